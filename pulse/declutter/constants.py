"""Wires whose values are known before running."""

from pulse.declutter.rewrite import Rewrite, TypedNode
from pulse.graph import OutletId
from pulse.ops.source import Const
from pulse.patch import Patch
from pulse.typed import TypedGraph


def _fold(graph: TypedGraph, node: TypedNode) -> Patch | None:
    if not node.inputs or any(fact.value is None for fact in graph.input_facts(node)):
        return None
    patch = Patch(graph)
    outlets = patch.wire(node.name, node.op, [patch.tap(outlet) for outlet in node.inputs])
    if not all(isinstance(patch.graph.node(outlet).op, Const) for outlet in outlets):
        return None
    for slot, outlet in enumerate(outlets):
        patch.shunt(OutletId(node.id, slot), outlet)
    return patch


CONSTANTS = (
    Rewrite("fold", "an op is a function of its inputs: of known inputs it is a known tensor", _fold),
)
