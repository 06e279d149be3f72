"""Graphs of a few named nodes."""

from dataclasses import dataclass

from pulse.graph import Graph, OutletId


@dataclass(frozen=True)
class NamedOp:
    name: str

    def detail(self) -> str:
        return ""


def diamond() -> Graph[str, NamedOp]:
    graph: Graph[str, NamedOp] = Graph()
    x = graph.inputs = graph.add("x", NamedOp("source"), (), ["int"])
    left = graph.add("left", NamedOp("f"), x, ["int", "bool"])
    right = graph.add("right", NamedOp("g"), [left[0], x[0]], ["int"])
    graph.add("end", NamedOp("h"), [left[1], right[0], right[0]], ["int"])
    graph.set_outputs([OutletId(3), OutletId(1, 1)], ["sum", "flag"])
    return graph
