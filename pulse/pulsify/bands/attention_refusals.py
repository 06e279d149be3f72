"""Refusals of attention: one for all of its nodes."""

from collections.abc import Callable

from pulse.dim import Symbol
from pulse.errors import Refusal
from pulse.graph import OutletId
from pulse.ops.matmul import MatMul
from pulse.ops.norm import Softmax
from pulse.ops.source import Source
from pulse.support.record import record
from pulse.support.wording import spell
from pulse.typed import TypedGraph, TypedNode

BOTH_DIRECTIONS = (
    "every frame meets frames up to the end of the stream: attention in both directions is exact only when the whole "
    "stream is known"
)
LIMIT_REACH = "limit its reach (a window, or chunks)"


class NoBandError(Exception):
    """Why an attention has no limited reach, and what would help; reported as a refusal."""

    def __init__(self, reason: str, advice: str = LIMIT_REACH) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice


def both_directions_help() -> str:
    """Return what the refusal advises."""
    return (
        "hide what is ahead (a causal mask, or chunks), and limit its reach (a window, or chunks; or "
        f"{spell('max_context')})"
    )


@record(eq=False, frozen=False)
class _Scores:
    """The terms of the scores of a softmax.

    products  the products of pairs of frames
    nodes     the nodes between, and the mask's nodes that depend on positions
    masked    whether a mask may hide pairs
    data      wires with one frame per position from which a mask is computed
    """

    products: list[int]
    nodes: list[int]
    masked: bool
    data: list[OutletId]


def refuse_unknown_scores(
    graph: TypedGraph, node: TypedNode, symbol: Symbol, static: Callable[[OutletId], bool]
) -> dict[str, Refusal | None]:
    """Refuse scores that are more than a product and a known mask: node name -> refusal; empty if they are not."""
    if not isinstance(node.op, Softmax) or not node.outputs or static(OutletId(node.id)):
        return {}
    if len(node.outputs[0].fact.symbolic_axes(symbol)) != 2:
        return {}
    scores = _read_scores(graph, node, symbol, static)
    if not scores.products or (scores.masked and not scores.data):
        return {}
    reason, advice = BOTH_DIRECTIONS, both_directions_help()
    if scores.data:
        nodes = (graph.nodes[node_id] for node_id in graph.order(scores.data))
        names = ", ".join(sorted(f"input {node.name}" for node in nodes if isinstance(node.op, Source)))
        reason = f"its mask is computed from {names}, so which frames meet is not known before the stream"
        advice = "omit a mask of padding, since a stream has none; compute others from positions (arange)"
    return refuse_attention(graph, node, graph.nodes[scores.products[0]], symbol, static, reason, advice)


def refuse_attention(
    graph: TypedGraph,
    softmax: TypedNode,
    product: TypedNode,
    symbol: Symbol,
    static: Callable[[OutletId], bool],
    reason: str,
    advice: str,
) -> dict[str, Refusal | None]:
    """Refuse the product; the nodes of its scores and mask map to None, since its refusal covers them."""
    nodes = _read_scores(graph, softmax, symbol, static).nodes
    refusals: dict[str, Refusal | None] = dict.fromkeys(graph.nodes[node].name for node in nodes)
    axis = graph.fact(OutletId(product.id)).symbolic_axes(symbol)[0]
    reason_at_softmax = f"(softmax {softmax.name}) {reason}"
    refusals[product.name] = Refusal(product.name, "attention", axis, "whole", reason_at_softmax, advice)
    return refusals


def _read_scores(
    graph: TypedGraph, softmax: TypedNode, symbol: Symbol, static: Callable[[OutletId], bool]
) -> _Scores:
    scores = _Scores([], [], False, [])
    pending, visited = [*softmax.inputs], set[OutletId]()
    while pending:
        outlet = pending.pop()
        if outlet in visited:
            continue
        visited.add(outlet)
        node, pairs = graph.node(outlet), len(graph.fact(outlet).symbolic_axes(symbol)) > 1
        if static(outlet):
            scores.masked |= pairs
        elif not pairs or isinstance(node.op, Source):
            scores.data.append(outlet)
            continue
        elif isinstance(node.op, MatMul):
            scores.products.append(node.id)
            scores.nodes.append(node.id)
            pending += [source for source in node.inputs if static(source)]
            continue
        if pairs:
            scores.nodes.append(node.id)
            pending += node.inputs
    return scores
