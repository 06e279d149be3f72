"""Lookups of each entry at its own position, as masks are written that call a function for each pair of positions."""

from dataclasses import dataclass

from pulse.dim import TDim
from pulse.facts import Shape
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Cast
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Transpose
from pulse.ops.source import Const
from pulse.ops.time_position import Range
from pulse.typed import TypedGraph


@dataclass(frozen=True)
class IndexPosition:
    """One number of each index: 0, or the place along one axis of the result.

    axis   the axis of the indices; None: the number is 0
    count  the number of places
    """

    axis: int | None
    count: TDim


def gather_by_positions(node: NodeContext, indices: OutletId) -> OutletId | None:
    """Return the data with its axes moved as in the result; None if the indices are not such positions."""
    x, shape = node.fact(0), node.graph.fact(indices).shape
    positions = _positions(node.graph, indices)
    if positions is None:
        return None
    sizes = x.shape[: len(positions)]
    if any(not position.count.prove_eq(size).yes for position, size in zip(positions, sizes)):
        return None
    moving = [position for position in positions if position.axis is not None]
    axes = [position.axis for position in moving if position.axis is not None]
    if len(set(axes)) < len(axes):
        return None
    data = node.input(0)
    for axis in reversed([axis for axis, position in enumerate(positions) if position.axis is None]):
        data = node.wire(RemoveAxis(axis), [data], f"first{axis}")
    order = sorted(range(len(axes)), key=lambda index: axes[index])
    trailing_shape = x.shape[len(positions) :]
    if order != list(range(len(axes))):
        perm = (*order, *range(len(axes), len(axes) + len(trailing_shape)))
        data = node.wire(Transpose(perm), [data], "in_order")
    for axis in range(len(shape) - 1):
        if axis not in axes:
            data = node.wire(AddAxis(axis), [data], f"axis{axis}")
    return node.wire(Expand((*shape[:-1], *trailing_shape)), [data])


def _positions(graph: TypedGraph, indices: OutletId) -> list[IndexPosition] | None:
    """Return the kind of each number of the indices, along their last axis."""
    fact, producer = graph.fact(indices), graph.node(indices)
    last = fact.rank - 1
    while isinstance(producer.op, Cast):
        producer = graph.node(producer.inputs[0])
    is_concat = isinstance(producer.op, Concat) and producer.op.axis == last
    parts = producer.inputs if is_concat else [OutletId(producer.id)]
    positions: list[IndexPosition] = []
    for part in parts:
        if graph.fact(part).shape[last] != TDim.of(1):
            return None
        position = _position(graph, part)
        if position is None or position.axis == last:
            return None
        positions.append(position)
    return positions


def _position(graph: TypedGraph, outlet: OutletId) -> IndexPosition | None:
    path: list[OutletId] = []
    node = graph.node(outlet)
    while node.op.keeps_order or isinstance(node.op, Expand | Cast):
        path.append(outlet)
        outlet = node.inputs[0]
        node = graph.node(outlet)
    if isinstance(node.op, Const):
        value = node.op.value
        return IndexPosition(None, TDim.of(1)) if value.dtype.kind in "iu" and not value.any() else None
    if not isinstance(node.op, Range) or (node.op.start, node.op.step) != (0, 1):
        return None
    axis: int | None = 0
    for step in reversed(path):
        op, shape = graph.node(step).op, graph.fact(step).shape
        if isinstance(op, AddAxis):
            axis += op.axis <= axis
        elif isinstance(op, RemoveAxis):
            axis -= op.axis < axis
        elif isinstance(op, Expand):
            axis += len(shape) - graph.fact(graph.node(step).inputs[0]).rank
        elif op.keeps_order:
            axis = _only_axis(shape, node.op.length)
        if axis is None:
            return None
    return IndexPosition(axis, node.op.length)


def _only_axis(shape: Shape, length: TDim) -> int | None:
    """Return the axis of this length if all others are 1; otherwise None."""
    longer = [axis for axis, dim in enumerate(shape) if dim != TDim.of(1)]
    return longer[0] if len(longer) == 1 and shape[longer[0]] == length else None
