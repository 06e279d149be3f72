"""Changes of shape: views if strides can express them, else copies."""

from collections.abc import Iterator

from pulse.graph import OutletId
from pulse.ops.conv import Conv, ConvTranspose
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose
from pulse.program.lower.elementwise import broadcast
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


@lowers(Transpose)
def lower_transpose(lowering: Lowering, node: PulsedNode, op: Transpose) -> list[TensorView]:
    return [lowering.value(node.inputs[0]).transpose(op.perm)]


@lowers(AddAxis, RemoveAxis, Reshape)
def lower_reshape(
    lowering: Lowering, node: PulsedNode, op: AddAxis | RemoveAxis | Reshape
) -> list[TensorView]:
    """Return a view if the strides allow it; else copy, in the axis order of the input."""
    outlet = OutletId(node.id)
    x, shape = lowering.value(node.inputs[0]), lowering.fact(outlet).sizes
    view = x.reshape(shape)
    if view is not None:
        return [view]
    if _read_by_convolutions(lowering, outlet):
        lowering.leave_pending(outlet, lambda: _copy_reshaped(lowering, outlet, x))
        return []
    return [_copy_reshaped(lowering, outlet, x)]


def _copy_reshaped(lowering: Lowering, outlet: OutletId, x: TensorView) -> TensorView:
    """Copy a tensor into a wire of another shape, in the axis order of the input if that is possible."""
    shape = lowering.fact(outlet).sizes
    target = lowering.allocate_wire(outlet, _order_of(lowering, outlet, x))
    inside = target.reshape(x.shape)
    if inside is None:
        target = lowering.allocate_wire(outlet, range(len(shape)))
        inside = target.reshape(x.shape)
        assert inside is not None
    lowering.copy(x, inside)
    return target


def _read_by_convolutions(lowering: Lowering, outlet: OutletId) -> bool:
    """Return whether only convolutions read the wire; they may need no copy, see ``shape_split``."""
    graph = lowering.graph
    readers = [(graph.nodes[inlet.node].op, inlet.slot) for inlet in graph.outlet(outlet).successors]
    are_convolutions = all(isinstance(op, Conv | ConvTranspose) and slot == 0 for op, slot in readers)
    return are_convolutions and bool(readers) and not lowering.is_read_later(outlet)


def _order_of(lowering: Lowering, outlet: OutletId, x: TensorView) -> list[int]:
    """Return the axis order of a reshaped wire: the stream, then the axes by smallest stride in x, largest first."""
    fact = lowering.fact(outlet)
    nearest = [0] * fact.rank
    for here, from_axes in matching_axes(list(fact.sizes), list(x.shape)):
        steps = [abs(x.strides[axis]) for axis in from_axes if x.shape[axis] > 1]
        for axis in here:
            nearest[axis] = min(steps, default=0)
    stream = -1 if fact.stream is None else fact.stream.axis
    return sorted(range(fact.rank), key=lambda axis: (axis != stream, -nearest[axis], axis))


def matching_axes(left: list[int], right: list[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the smallest groups of adjacent axes with the same elements; axes of size 1 form their own groups."""
    i, j = 0, 0
    while i < len(left) or j < len(right):
        here, there = left[i : i + 1] == [1], right[j : j + 1] == [1]
        first, second, sizes = i, j, [1, 1]
        if here or there:
            i, j = i + here, j + there
        while not (here or there):
            if sizes[0] <= sizes[1]:
                sizes[0] *= left[i]
                i += 1
            else:
                sizes[1] *= right[j]
                j += 1
            if sizes[0] == sizes[1]:
                break
        yield list(range(first, i)), list(range(second, j))


@lowers(Expand)
def lower_expand(lowering: Lowering, node: PulsedNode, op: Expand) -> list[TensorView]:
    """Return a view with strides of zero."""
    return [broadcast(lowering.value(node.inputs[0]), lowering.fact(OutletId(node.id)).sizes)]


@lowers(Tile)
def lower_tile(lowering: Lowering, node: PulsedNode, op: Tile) -> list[TensorView]:
    """Repeat the input by copies."""
    x = lowering.value(node.inputs[0])
    outlet = OutletId(node.id)
    target = lowering.allocate_wire(outlet)
    repeats = [int(times) for times in op.repeats]
    shape = [n for times, size in zip(repeats, x.shape) for n in (times, size)]
    inside = [n for size, step in zip(x.shape, target.strides) for n in (step * size, step)]
    outside = [n for step in x.strides for n in (0, step)]
    lowering.copy(x.view(shape, outside), target.view(shape, inside))
    return [target]
