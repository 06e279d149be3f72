"""Graphs as text and as pictures, whatever their facts and ops."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from pulse.graph import Graph, Node, OutletId
from pulse.support.printable import printable
from pulse.support.wording import count_of
from pulse.text.picture import Picture


class HasNameAndDetail(Protocol):
    """The part of an op that a dump needs."""

    @property
    def name(self) -> str: ...

    def detail(self) -> str: ...


F = TypeVar("F")
O = TypeVar("O", bound=HasNameAndDetail)


def text(graph: Graph[F, O], title: str = "graph") -> str:
    """Return one aligned line for each node, each after what it reads.

    id, name, op, attributes, wires read, facts of the outputs; the outputs of the model in the last line.
    """
    rows = [_row(graph, graph.nodes[node_id]) for node_id in _ordered_nodes(graph)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [printable(f"{title}: {count_of(len(rows), 'node')}")]
    for row in rows:
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    names = (
        name if name == graph.label(outlet) else f"{name} = {graph.label(outlet)}"
        for name, outlet in zip(graph.output_names, graph.outputs)
    )
    return "\n".join([*lines, printable(f"outputs: {', '.join(names)}".rstrip())]) + "\n"


def _row(graph: Graph[F, O], node: Node[F, O]) -> Sequence[str]:
    operands = ", ".join(graph.label(outlet) for outlet in node.inputs)
    facts = "; ".join(str(outlet.fact) for outlet in node.outputs)
    cells = (str(node.id), node.name, node.op.name, node.op.detail(), f"({operands})", f"-> {facts}")
    return [printable(cell) for cell in cells]


def _ordered_nodes(graph: Graph[F, O]) -> list[int]:
    """Return every node that is not retired, each after what it reads."""
    return graph.order([OutletId(node.id) for node in graph.nodes if node.outputs])


def dot(graph: Graph[F, O], title: str = "graph") -> str:
    """Return the graph as Graphviz DOT, in groups by the scopes of names; edges carry the facts of their wires."""
    picture = Picture(title)
    for node_id in _ordered_nodes(graph):
        node = graph.nodes[node_id]
        label = [part for part in (node.name, node.op.name, node.op.detail()) if part]
        picture.add_box(f"n{node_id}", label, node.name)
        for outlet in node.inputs:
            picture.add_arrow(f"n{outlet.node}", f"n{node_id}", str(graph.fact(outlet)))
    for index, (name, outlet) in enumerate(zip(graph.output_names, graph.outputs)):
        picture.add_box(f"out{index}", [name], shape="oval")
        picture.add_arrow(f"n{outlet.node}", f"out{index}", str(graph.fact(outlet)))
    return picture.text()
