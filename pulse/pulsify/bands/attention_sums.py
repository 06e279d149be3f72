"""Scores that are a sum of two products: queries with keys, and other queries with positions."""

from pulse.dim import Symbol
from pulse.facts import Shape, TypedFact
from pulse.graph import Node, OutletId
from pulse.ops.concat import Concat
from pulse.ops.dims import broadcast_shapes
from pulse.ops.elementwise import Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.op import Op
from pulse.ops.shape import Expand
from pulse.patch import Patch
from pulse.typed import TypedGraph


def join_products(graph: TypedGraph, symbol: Symbol) -> None:
    """Rewrite ``q1 @ k1 + q2 @ k2`` as one product of queries and keys with more channels."""
    for node_id in graph.order():
        node = graph.nodes[node_id]
        if not isinstance(node.op, Elementwise) or node.op.kind != "add":
            continue
        products = [graph.node(source) for source in node.inputs]
        if all(_is_scores(graph, product, symbol) for product in products):
            _join(graph, node, products)


def _is_scores(graph: TypedGraph, node: Node[TypedFact, Op], symbol: Symbol) -> bool:
    if not isinstance(node.op, MatMul):
        return False
    q, k = (graph.fact(source) for source in node.inputs)
    fact = node.outputs[0].fact
    return (
        min(q.rank, k.rank) > 1
        and fact.symbolic_axes(symbol) == [fact.rank - 2, fact.rank - 1]
        and q.shape[-1].is_const
        and k.shape[-2].is_const
        and fact.shape[-1].prove_eq(fact.shape[-2]).yes
    )


def _join(graph: TypedGraph, node: Node[TypedFact, Op], products: list[Node[TypedFact, Op]]) -> None:
    old = OutletId(node.id)
    sides = [[graph.fact(product.inputs[side]) for product in products] for side in (0, 1)]
    batch = broadcast_shapes([fact.shape[:-2] for facts in sides for fact in facts], "batch axes")
    if (*batch, *graph.fact(old).shape[-2:]) != graph.fact(old).shape:
        return
    patch = Patch(graph)
    name = graph.label(old)

    def widen(outlet: OutletId, shape: Shape, suffix: str) -> OutletId:
        inside = patch.tap(outlet)
        target = (*batch, *shape[-2:])
        return inside if shape == target else patch.wire(f"{name}.{suffix}", Expand(target), [inside])[0]

    operands: list[OutletId] = []
    for side, (letter, axis) in enumerate((("q", len(batch) + 1), ("k", len(batch)))):
        parts = [
            widen(product.inputs[side], fact.shape, f"{letter}{index}")
            for index, (product, fact) in enumerate(zip(products, sides[side]))
        ]
        operands.append(patch.wire(f"{name}.{letter}", Concat(axis), parts)[0])
    patch.shunt(old, patch.wire(name, MatMul(), operands)[0])
    patch.apply()
