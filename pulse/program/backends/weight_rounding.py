"""Replace weights by the values of their stored forms, in a graph and in the bodies of its scans."""

from collections.abc import Iterator, Sequence
from functools import partial

from pulse.facts import Array, PulsedFact
from pulse.graph import InletId
from pulse.ops.op import Op
from pulse.program.activation_rounding import round_graph_activations
from pulse.program.weights import stored_operand
from pulse.rounding import Rounding
from pulse.typed import TypedGraph, TypedNetwork, add_constant, has_constant_shapes


def rounded_operands(
    name: str, op: Op, inputs: Sequence[PulsedFact], form: str
) -> Iterator[tuple[int, Array]]:
    """Yield the constant operands of a node that their stored form rounds: slot and rounded values as f32.

    Raises CompileError: int8 cannot hold it
    """
    for slot, fact in enumerate(inputs):
        operand = stored_operand(name, op, inputs, slot, form)
        if operand is not None and operand.codes is not fact.value:
            yield slot, operand.values


def round_offline(model: TypedNetwork, rounding: Rounding) -> TypedNetwork:
    """Return the offline model that a program with rounded weights, and perhaps activations, equals.

    Raises CompileError: int8 cannot hold a weight, or the forms do not fit
    """
    rounded = model.copy()
    rounding.check()
    if rounding.activation_form is not None:
        round_graph_activations(rounded.graph, rounding.activation_form)
    _round_weights("", rounding.form, rounded.graph)
    return rounded


def with_rounded_bodies(name: str, op: Op, form: str) -> Op:
    """Return an op with the weights of its bodies rounded. Raises CompileError: int8 cannot hold one.

    A body whose shapes are not constant keeps its weights, since no kernels run it.
    """
    return op if form == "f32" else op.with_bodies(partial(_with_rounded_weights, name, form))


def _with_rounded_weights(prefix: str, form: str, body: TypedNetwork) -> TypedNetwork:
    if not has_constant_shapes(body):
        return body
    rounded = body.copy()
    _round_weights(prefix, form, rounded.graph)
    return rounded


def _round_weights(prefix: str, form: str, graph: TypedGraph) -> None:
    for node in list(graph.nodes):
        name = f"{prefix}/{node.name}" if prefix else node.name
        node.op = with_rounded_bodies(name, node.op, form)
        inputs = [PulsedFact(fact.dtype, fact.shape, fact.value) for fact in graph.input_facts(node)]
        for slot, value in rounded_operands(name, node.op, inputs, form):
            weight = add_constant(graph, graph.unique(f"{node.name}.weight{slot}"), value)
            graph.connect(weight, InletId(node.id, slot))
