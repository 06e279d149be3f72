"""The edges of a graph."""

from pulse.build import (
    GraphView,
)


def edges(view: GraphView) -> set[tuple[str, int, str, int]]:
    """Who reads what: the names and numbers of both ends, open inputs left out."""
    return {
        (wire.node.name, wire.slot, node.name, place)
        for node in view
        for place, wire in enumerate(node.inputs())
        if wire is not None
    }
