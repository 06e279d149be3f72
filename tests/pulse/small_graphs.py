"""Graphs of a few named nodes."""

from dataclasses import dataclass

from pulse.graph import Graph, OutletId


@dataclass(frozen=True)
class Named:
    name: str

    def detail(self) -> str:
        return ""


def diamond() -> Graph[str, Named]:
    graph: Graph[str, Named] = Graph()
    x = graph.inputs = graph.add("x", Named("source"), (), ["int"])
    left = graph.add("left", Named("f"), x, ["int", "bool"])
    right = graph.add("right", Named("g"), [left[0], x[0]], ["int"])
    graph.add("end", Named("h"), [left[1], right[0], right[0]], ["int"])
    graph.set_outputs([OutletId(3), OutletId(1, 1)], ["sum", "flag"])
    return graph
