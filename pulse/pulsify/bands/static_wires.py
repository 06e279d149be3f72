"""Wires that depend on lengths and constants alone: which ones they are, and their values."""

from pulse.dim import Symbol
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.source import Source
from pulse.typed import TypedGraph


class StaticWires:
    """The set of wires that depend on lengths and constants alone, found on demand."""

    def __init__(self, graph: TypedGraph) -> None:
        self.graph = graph
        self._is_static: dict[int, bool] = {}

    def __call__(self, outlet: OutletId) -> bool:
        pending = [outlet.node]
        while pending:
            node = self.graph.nodes[pending[-1]]
            waiting = [source.node for source in node.inputs if source.node not in self._is_static]
            if waiting:
                pending += waiting
                continue
            self._is_static[node.id] = not isinstance(node.op, Source) and all(
                self._is_static[source.node] for source in node.inputs
            )
            pending.pop()
        return self._is_static[outlet.node]


def value_at(
    graph: TypedGraph, outlet: OutletId, env: dict[Symbol, int], values: dict[OutletId, Array]
) -> Array:
    """Return the value of a wire at a length, and add it and those that it is computed from to ``values``."""
    if outlet not in values:
        node = graph.node(outlet)
        results = node.op.eval([value_at(graph, source, env, values) for source in node.inputs], env)
        values.update({OutletId(outlet.node, slot): result for slot, result in enumerate(results)})
    return values[outlet]
