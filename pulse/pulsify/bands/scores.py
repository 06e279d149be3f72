"""Scores of an attention in a graph: from their softmax back to the product of queries and keys."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pulse.dim import Symbol
from pulse.facts import Shape, TypedFact
from pulse.graph import Node, OutletId
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.matmul import MatMul
from pulse.ops.op import Op
from pulse.pulsify.bands.mask import MASKED, ScoreStep
from pulse.pulsify.bands.relative_pairs import find_pairs
from pulse.pulsify.bands.relative_shift import RelativeScores, find_shift
from pulse.pulsify.bands.static_wires import StaticWires
from pulse.typed import TypedGraph


def trace_scores(
    graph: TypedGraph, outlet: OutletId, symbol: Symbol, static: StaticWires
) -> tuple[int, tuple[ScoreStep, ...], float, RelativeScores | None] | None:
    """Trace scores up to their product: its node, the steps in order, their scale, and what is added to the product."""
    steps: list[ScoreStep] = []
    scale = 1.0
    while True:
        node = graph.node(outlet)
        if isinstance(node.op, MatMul):
            return node.id, tuple(reversed(steps)), scale, None
        slots = [slot for slot, source in enumerate(node.inputs) if not static(source)]
        if len(slots) == 2 and isinstance(node.op, Elementwise) and node.op.kind == "add":
            product, own_steps, own_scale, relative = _relative_scores(graph, node, symbol, static)
            every = tuple(reversed([*steps, *own_steps]))
            return None if relative is None else (product, every, scale * own_scale, relative)
        if len(slots) != 1 or not _keeps_scores(graph, node, slots[0]):
            return None
        if isinstance(node.op, Elementwise):
            factor = _factor(graph, node, slots[0])
            if factor is None:
                return None
            scale *= factor
        steps.append(ScoreStep(node.id, slots[0]))
        outlet = node.inputs[slots[0]]


def _relative_scores(
    graph: TypedGraph, node: Node[TypedFact, Op], symbol: Symbol, static: StaticWires
) -> tuple[int, list[ScoreStep], float, RelativeScores | None]:
    """Return the product, how it is scaled before the sum, and the relative scores."""
    for operand, other in (node.inputs, node.inputs[::-1]):
        product, steps, scale = _without_scale(graph, operand)
        if isinstance(graph.node(product).op, MatMul):
            scores, _, factor = _without_scale(graph, other)
            rows = graph.fact(product).shape[-1]
            relative = find_shift(graph, scores, symbol, rows, static) or find_pairs(
                graph, scores, symbol, rows
            )
            if relative is not None and static(graph.nodes[relative.product].inputs[1]):
                return product.node, steps, scale, replace(relative, factor=factor / scale)
    return 0, [], 1.0, None


def _without_scale(graph: TypedGraph, outlet: OutletId) -> tuple[OutletId, list[ScoreStep], float]:
    """Strip multiplications by constants from a wire: the unscaled wire, the steps removed (last first), the scale."""
    steps, scale = list[ScoreStep](), 1.0
    while True:
        node = graph.node(outlet)
        if not isinstance(node.op, Elementwise) or ELEMENTWISE[node.op.kind].factor is None:
            return outlet, steps, scale
        slot = int(graph.fact(node.inputs[0]).value is not None)
        factor = _factor(graph, node, slot) if _keeps_scores(graph, node, slot) else None
        if factor is None:
            return outlet, steps, scale
        steps.append(ScoreStep(node.id, slot))
        scale *= factor
        outlet = node.inputs[slot]


def _keeps_scores(graph: TypedGraph, node: Node[TypedFact, Op], slot: int) -> bool:
    """Return whether the op leaves each score at its row and column (the last two axes)."""
    before, after = graph.fact(node.inputs[slot]), node.outputs[0].fact
    if before.rank < 2 or after.rank < 2 or not have_same_shape(before.shape[-2:], after.shape[-2:]):
        return False
    if isinstance(node.op, Cast):
        return np.issubdtype(node.op.dtype, np.floating)
    if node.op.keeps_order:
        return True
    return (
        isinstance(node.op, Elementwise)
        and _is_affine(node.op)
        and have_same_shape(before.shape, after.shape)
    )


def _is_affine(op: Elementwise) -> bool:
    """Return whether the function adds to its scores, multiplies them, or replaces some."""
    row = ELEMENTWISE[op.kind]
    return op.kind == "where" or (row.arity == 2 and (row.signs is not None or row.factor is not None))


def _factor(graph: TypedGraph, node: Node[TypedFact, Op], slot: int) -> float | None:
    """Return the factor by which an elementwise op multiplies its scores, None if it does something else."""
    assert isinstance(node.op, Elementwise)
    row = ELEMENTWISE[node.op.kind]
    if row.signs is not None:
        return float(row.signs[slot])
    if row.factor is None:  # where
        return 1.0 if slot > 0 else None
    value = graph.fact(node.inputs[1 - slot]).value
    if value is None or value.size != 1:
        return None
    number = float(value.reshape(()).item())
    return row.factor(number, slot) if number != 0 and np.isfinite(number) else None


def hiding_conditions(graph: TypedGraph, steps: Sequence[ScoreStep]) -> set[tuple[OutletId, int]]:
    """Return the conditions that replace scores by masked numbers, each with the input slot of the scores.

    The weights there are 0 already, or all weights of the row are NaN.
    """
    conditions: set[tuple[OutletId, int]] = set()
    for step in steps:
        node = graph.nodes[step.node]
        if isinstance(node.op, Elementwise) and node.op.kind == "where":
            value = graph.fact(node.inputs[3 - step.slot]).value
            if value is not None and (value <= MASKED).all():
                conditions.add((node.inputs[0], step.slot))
    return conditions


def have_same_shape(left: Shape, right: Shape) -> bool:
    """Return whether two shapes are the same for every allowed length."""
    return len(left) == len(right) and all(a.prove_eq(b).yes for a, b in zip(left, right))
