"""int8 or bf16 activations: the rows that are multiplied by weights of this form are rounded to it too.

The rounding is part of the graph of such a program: a ``RoundActivations`` before each product that takes part, and in
recurrent layers a state that is rounded before it is multiplied. Streams equal the offline model of the same graph
up to ties: a value halfway between two codes may become either.

A product takes part if its weights are stored in this form (int8: on request), its rows have 16 to ``MAX_ROW_ELEMENTS``
elements, and it has at least 16 columns. All others keep their activations.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from pulse.errors import CompileError
from pulse.facts import PulsedFact, TypedFact
from pulse.graph import Graph, InletId, Node, OutletId
from pulse.ops.op import Op
from pulse.ops.quantize_activations import RoundActivations
from pulse.ops.quantize_codes import MAX_ROW_ELEMENTS
from pulse.ops.weight_units import ActivationForm, ActivationLayout, UnitLayout
from pulse.program.weights import StoredWeight, are_codes, stored_operand
from pulse.pulsify.network import PulsedNetwork
from pulse.support.wording import spell
from pulse.typed import TypedNetwork, has_constant_shapes

MIN_ROW_ELEMENTS = MIN_COLUMNS = 16
"""The fewest elements of a row and the fewest columns of a product that takes part: below, codes cost too much."""

F = TypeVar("F", bound=TypedFact)


def with_rounded_activations(model: PulsedNetwork, form: ActivationForm) -> PulsedNetwork:
    """Make the products with weights of a form of a pulsed model take rows of this form; the wires keep their ids.

    Raises CompileError: the model has no such product, or int8 cannot hold a weight
    """
    graph = model.graph.duplicate()
    if not round_graph_activations(graph, form):
        exact = "" if form == "int8" else ", whose weights f16 does not hold exactly"
        raise CompileError(
            f"{model.title}: {spell('activations', form)}: no product of the model takes rows of {form}; they need "
            f"{MIN_ROW_ELEMENTS} to {MAX_ROW_ELEMENTS} elements, {MIN_COLUMNS} columns and a constant matrix of at "
            f"least 4 KiB{exact}; omit activations"
        )
    return replace(model, graph=graph)


def round_graph_activations(graph: Graph[F, Op], form: ActivationForm, prefix: str = "") -> bool:
    """Round the rows of all nodes of a graph, and of those in their bodies; return whether any took part."""
    is_rounded = False
    for node in list(graph.nodes):
        name = f"{prefix}{node.name}"
        bodies: list[bool] = []
        node.op = node.op.with_bodies(partial(_round_body, form, f"{name}/", bodies))
        is_rounded |= any(bodies)
        for rows in list(_rounded_operands(name, graph, node, form)):
            is_rounded = True
            if rows.slot is None:
                node.op = node.op.with_rounded_state(form)
            else:
                _round_operand(graph, node, rows, rows.slot, form)
    return is_rounded


def _round_body(
    form: ActivationForm, prefix: str, rounded_bodies: list[bool], body: TypedNetwork
) -> TypedNetwork:
    if not has_constant_shapes(body):
        return body  # no kernels run it, so its weights are not rounded either
    rounded = body.copy()
    rounded_bodies.append(round_graph_activations(rounded.graph, form, prefix))
    return rounded


def _rounded_operands(
    name: str, graph: Graph[F, Op], node: Node[F, Op], form: ActivationForm
) -> Iterator[ActivationLayout]:
    """Yield the rows that a node multiplies by weights of a form, if rounding them pays."""
    facts = [PulsedFact(fact.dtype, fact.shape, fact.value) for fact in graph.input_facts(node)]
    for slot, fact in enumerate(facts):
        weight, layout = fact.value, node.op.weight_units(facts, slot)
        if weight is None or layout is None or layout.rows is None or not _is_worth_it(layout, layout.rows):
            continue
        stored = stored_operand(name, node.op, facts, slot, form)
        if stored is not None and _is_in_form(stored, form) and not are_codes(weight):
            yield layout.rows


def _is_in_form(stored: StoredWeight, form: ActivationForm) -> bool:
    return stored.codes.dtype == (np.int8 if form == "int8" else np.uint16)


def _is_worth_it(layout: UnitLayout, rows: ActivationLayout) -> bool:
    elements, units = layout.shape[layout.summed[0]], math.prod(layout.shape)
    columns = units // math.prod(layout.shape[axis] for axis in layout.summed) // rows.groups
    return MIN_ROW_ELEMENTS <= elements <= MAX_ROW_ELEMENTS and columns >= MIN_COLUMNS


def _round_operand(
    graph: Graph[F, Op], node: Node[F, Op], rows: ActivationLayout, slot: int, form: ActivationForm
) -> None:
    """Insert the rounding before an operand, in the node's views; readers of the same rows share it."""
    source, op = node.inputs[slot], RoundActivations(rows.axis, rows.groups, form)
    fact: Any = graph.fact(source)
    if fact.value is not None:
        return
    for inlet in graph.outlet(source).successors:
        if graph.nodes[inlet.node].op == op:
            graph.connect(OutletId(inlet.node), InletId(node.id, slot))
            return
    (rounded,) = graph.add(f"{node.name}.rows", op, [source], [fact])
    graph.connect(rounded, InletId(node.id, slot))
    for view in graph.views.values():
        if node.id in view.nodes:
            view.nodes.add(rounded.node)
