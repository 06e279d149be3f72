"""Broadcasts that an elementwise op does by itself."""

from pulse.declutter.rewrite import Rewrite, TypedNode, result
from pulse.ops.elementwise import Elementwise
from pulse.ops.shape import Expand
from pulse.patch import Patch, replace_op
from pulse.typed import TypedGraph


def _expand_into(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not isinstance(node.op, Elementwise):
        return None
    for slot, outlet in enumerate(node.inputs):
        expand = graph.node(outlet)
        if not isinstance(expand.op, Expand):
            continue
        inputs = [*node.inputs[:slot], expand.inputs[0], *node.inputs[slot + 1 :]]
        facts = node.op.facts([graph.fact(source) for source in inputs])
        if facts[0].agrees(graph.fact(result(node))):
            return replace_op(graph, result(node), node.name, node.op, inputs)
    return None


BROADCASTS = (
    Rewrite(
        "expand_into",
        "an elementwise op broadcasts its inputs itself, if another one has the size",
        _expand_into,
        (Elementwise,),
    ),
)
