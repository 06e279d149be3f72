"""Find small recurrent layers that do not depend on each other, and order the nodes so that they are neighbours."""

from collections.abc import Hashable, Iterator, Sequence

from pulse.graph import OutletId
from pulse.jit.language.simd import LANES
from pulse.ops.recurrent import Recurrent, RecurrentStream
from pulse.program.kernels.recurrent.gates import ACTIVATIONS
from pulse.program.lower.recurrent_start import layer_of
from pulse.pulsify.network import PulsedGraph, PulsedNode

MAX_SMALL_UNITS = 8
"""Maximum number of units of a small layer; larger ones have an instruction each."""


def lanes_of_layer(hidden: int) -> int:
    """Return the elements of a vector that a small layer takes."""
    return 4 if hidden <= 4 else 8


def arrange_siblings(graph: PulsedGraph, order: Sequence[int]) -> tuple[list[int], list[tuple[int, ...]]]:
    """Return an order in which layers of a group are adjacent, and the groups."""
    arranged = list(order)
    groups = [group for group in _groups(graph, order) if len(group) > 1]
    for group in groups:
        arranged = _make_adjacent(graph, arranged, set(group))
    indices = {node_id: index for index, node_id in enumerate(arranged)}
    siblings: list[tuple[int, ...]] = []
    for group in groups:
        ordered = sorted(group, key=lambda node_id: indices[node_id])
        if indices[ordered[-1]] - indices[ordered[0]] == len(ordered) - 1:
            siblings.append(tuple(ordered))
    return arranged, siblings


def _groups(graph: PulsedGraph, order: Sequence[int]) -> Iterator[list[int]]:
    """Yield groups of layers of one kind that do not depend on each other."""
    dependencies: dict[int, set[int]] = {}
    """Node -> the small layers on which it depends."""
    open_groups: dict[Hashable, list[list[int]]] = {}
    for node_id in order:
        node = graph.nodes[node_id]
        needed = set[int]().union(*(dependencies[outlet.node] for outlet in node.inputs))
        key = _sibling_key(graph, node)
        dependencies[node_id] = needed if key is None else needed | {node_id}
        if key is None:
            continue
        groups = open_groups.setdefault(key, [])
        max_size = LANES // lanes_of_layer(graph.fact(OutletId(node_id)).sizes[2])
        fitting = (group for group in groups if len(group) < max_size and needed.isdisjoint(group))
        group = next(fitting, None)
        if group is None:
            groups.append([node_id])
        else:
            group.append(node_id)
    for groups in open_groups.values():
        yield from groups


def _sibling_key(graph: PulsedGraph, node: PulsedNode) -> Hashable | None:
    """Return the key that layers of a group share; None for a node that cannot be in a group."""
    if not isinstance(node.op, Recurrent | RecurrentStream):
        return None
    op = layer_of(node)
    timing = (
        None if isinstance(node.op, Recurrent) else (node.op.offset, node.op.length, node.op.past is None)
    )
    cell, constant = op.cell, all(graph.fact(outlet).value is not None for outlet in node.inputs[1:4])
    supported = all(activation.name in ACTIVATIONS for activation in cell.activations)
    if not cell.resets_product or op.hidden > MAX_SMALL_UNITS or op.lengths is not None:
        return None
    sizes = graph.fact(OutletId(node.id)).sizes
    has_output = any(map(graph.is_output, node.wires))
    return None if has_output or not supported or not constant else (cell, sizes, timing)


def _make_adjacent(graph: PulsedGraph, order: Sequence[int], group: set[int]) -> list[int]:
    """Make a group adjacent in an order, after all its inputs; its readers in between move after it."""
    indices = [index for index, node_id in enumerate(order) if node_id in group]
    first, end = indices[0], indices[-1] + 1
    depends_on_group = set(group)
    needed: list[int] = []
    after: list[int] = []
    for node_id in order[first:end]:
        if node_id in group:
            continue
        if any(outlet.node in depends_on_group for outlet in graph.nodes[node_id].inputs):
            depends_on_group.add(node_id)
            after.append(node_id)
        else:
            needed.append(node_id)
    members = [order[index] for index in indices]
    return [*order[:first], *needed, *members, *after, *order[end:]]
