"""Find small recurrent layers that do not depend on each other, and order the nodes so that they are neighbours."""

from collections.abc import Hashable, Iterator, Sequence

from pulse.graph import OutletId
from pulse.ops.recurrent import Recurrent, RecurrentStream
from pulse.program.kernels.recurrent_gates import ACTIVATIONS
from pulse.program.lowering import PulsedNode
from pulse.pulsify.network import PulsedGraph

MAX_SMALL_UNITS = 8
"""The most units of a small layer."""


def width_of(hidden: int) -> int:
    """The vector lanes that a small layer takes."""
    return 4 if hidden <= 4 else 8


def side_by_side(graph: PulsedGraph, order: Sequence[int]) -> tuple[list[int], dict[int, tuple[int, ...]]]:
    """Return an order in which layers that run side by side are adjacent, and their groups: first node -> all nodes."""
    arranged = list(order)
    groups = [group for group in _groups(graph, order) if len(group) > 1]
    for group in groups:
        arranged = _gather(graph, arranged, set(group))
    indices = {node_id: index for index, node_id in enumerate(arranged)}
    siblings: dict[int, tuple[int, ...]] = {}
    for group in groups:
        ordered = sorted(group, key=lambda node_id: indices[node_id])
        if indices[ordered[-1]] - indices[ordered[0]] == len(ordered) - 1:
            siblings[ordered[0]] = tuple(ordered)
    return arranged, siblings


def _groups(graph: PulsedGraph, order: Sequence[int]) -> Iterator[list[int]]:
    """Yield groups of layers of one kind that do not depend on each other."""
    waits: dict[int, set[int]] = {}
    """Node -> the small layers on which it depends."""
    open_groups: dict[Hashable, list[list[int]]] = {}
    for node_id in order:
        node = graph.nodes[node_id]
        before = set[int]().union(*(waits[outlet.node] for outlet in node.inputs))
        kind = _kind(graph, node)
        waits[node_id] = before if kind is None else before | {node_id}
        if kind is None:
            continue
        groups = open_groups.setdefault(kind, [])
        most = 16 // width_of(graph.fact(OutletId(node_id)).sizes[2])
        fitting = (group for group in groups if len(group) < most and before.isdisjoint(group))
        group = next(fitting, None)
        if group is None:
            groups.append([node_id])
        else:
            group.append(node_id)
    for groups in open_groups.values():
        yield from groups


def _kind(graph: PulsedGraph, node: PulsedNode) -> Hashable | None:
    """The key that layers must share to run side by side; None for layers that cannot."""
    if not isinstance(node.op, Recurrent | RecurrentStream):
        return None
    op = node.op if isinstance(node.op, Recurrent) else node.op.op
    timing = (
        None if isinstance(node.op, Recurrent) else (node.op.offset, node.op.length, node.op.past is None)
    )
    cell, constant = op.cell, all(graph.fact(outlet).value is not None for outlet in node.inputs[1:4])
    supported = all(activation.name in ACTIVATIONS for activation in cell.activations)
    if (
        cell.kind != "gru"
        or not cell.linear_before_reset
        or op.hidden > MAX_SMALL_UNITS
        or op.lengths is not None
    ):
        return None
    sizes = graph.fact(OutletId(node.id)).sizes
    has_output = any(graph.is_output(OutletId(node.id, slot)) for slot in range(len(node.outputs)))
    return None if has_output or not supported or not constant else (cell, sizes, timing)


def _gather(graph: PulsedGraph, order: Sequence[int], group: set[int]) -> list[int]:
    """Reorder so that a group runs together, after all its inputs; readers in between move after it."""
    places = [place for place, node_id in enumerate(order) if node_id in group]
    first, behind = places[0], places[-1] + 1
    late = set(group)
    early: list[int] = []
    later: list[int] = []
    for node_id in order[first:behind]:
        if node_id in group:
            continue
        if any(outlet.node in late for outlet in graph.nodes[node_id].inputs):
            late.add(node_id)
            later.append(node_id)
        else:
            early.append(node_id)
    members = [order[place] for place in places]
    return [*order[:first], *early, *members, *later, *order[behind:]]
