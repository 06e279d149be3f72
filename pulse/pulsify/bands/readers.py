"""Readers of the weights of an attention in a graph: their products with values."""

from collections.abc import Collection, Iterator

from pulse.dim import Symbol
from pulse.facts import Shape, TypedFact
from pulse.graph import Node, OutletId
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.op import Op
from pulse.ops.shape import Transpose, matrix_transpose
from pulse.pulsify.bands.scores import have_same_shape
from pulse.support.record import record
from pulse.typed import TypedGraph


@record
class Reader:
    """A product of weights with values.

    node     the MatMul
    flipped  whether it is ``transpose(v) @ transpose(weights)``
    cleaned  whether NaN weights are replaced by zeros before
    """

    node: int
    flipped: bool
    cleaned: bool


def find_readers(
    graph: TypedGraph,
    weights: OutletId,
    symbol: Symbol,
    scores: Shape,
    hiding: Collection[tuple[OutletId, int]],
    cleaned: bool = False,
    flipped: bool = False,
) -> Iterator[Reader]:
    """Yield products of values with weights whose axes are in the order of the scores.

    hiding   conditions that mask scores, and the slot of the scores
    """
    same = have_same_shape(graph.fact(weights).shape, scores)
    for inlet in graph.outlet(weights).successors:
        node = graph.nodes[inlet.node]
        outlet = OutletId(node.id)
        if isinstance(node.op, MatMul):
            values = graph.fact(node.inputs[1 - inlet.slot])
            axis = -1 if flipped else -2
            if (
                inlet.slot == int(flipped)
                and values.rank > 1
                and symbol in values.shape[axis].symbols
                and same
            ):
                yield Reader(node.id, flipped, cleaned)
        elif isinstance(node.op, Cast) and node.op.dtype == graph.fact(weights).dtype:
            yield from find_readers(graph, outlet, symbol, scores, hiding, cleaned, flipped)
        elif isinstance(node.op, Transpose) and not flipped:
            rank = len(node.op.perm)
            if node.op.perm == matrix_transpose(rank):
                yield from find_readers(graph, outlet, symbol, scores, hiding, cleaned, True)
        elif node.op.keeps_order and not flipped:
            before, after = graph.fact(weights).shape, graph.fact(outlet).shape
            if len(after) > 1 and have_same_shape(before[-2:], after[-2:]):
                yield from find_readers(graph, outlet, symbol, scores, hiding, cleaned, flipped)
        elif (inlet.slot == 2 and _cleans(graph, node, weights)) or (
            (node.inputs[0], inlet.slot) in hiding and _is_zero(graph, node, 3 - inlet.slot)
        ):
            yield from find_readers(graph, outlet, symbol, scores, hiding, True, flipped)


def _cleans(graph: TypedGraph, node: Node[TypedFact, Op], weights: OutletId) -> bool:
    """Return whether it is ``where(isnan(weights), 0, weights)``."""
    if not isinstance(node.op, Elementwise) or node.op.kind != "where":
        return False
    test = graph.node(node.inputs[0])
    is_nan = isinstance(test.op, Elementwise) and test.op.kind == "isnan" and test.inputs == [weights]
    return is_nan and _is_zero(graph, node, 1)


def _is_zero(graph: TypedGraph, node: Node[TypedFact, Op], slot: int) -> bool:
    """Return whether the other branch of ``where`` is all zeros."""
    if not isinstance(node.op, Elementwise) or node.op.kind != "where":
        return False
    value = graph.fact(node.inputs[slot]).value
    return value is not None and not value.any()
