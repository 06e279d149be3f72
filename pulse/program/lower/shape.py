"""Changes of shape: views where strides can say it, copies where not."""

from pulse.graph import OutletId
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose
from pulse.program.lower.elementwise import broadcast
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.memory import Value


@lowers(Transpose)
def lower_transpose(cx: Lowering, node: PulsedNode, op: Transpose) -> list[Value]:
    """A view."""
    return [cx.value(node.inputs[0]).transpose(op.perm)]


@lowers(AddAxis, RemoveAxis, Reshape)
def lower_reshape(cx: Lowering, node: PulsedNode, op: AddAxis | RemoveAxis | Reshape) -> list[Value]:
    """A view where the axes lie well, else a copy in row-major order first."""
    x, shape = cx.value(node.inputs[0]), cx.fact(OutletId(node.id)).sizes
    view = x.reshape(shape)
    if view is None:
        view = cx.ordered(x, range(len(x.shape))).reshape(shape)
    assert view is not None
    return [view]


@lowers(Expand)
def lower_expand(cx: Lowering, node: PulsedNode, op: Expand) -> list[Value]:
    """A view with strides of zero."""
    return [broadcast(cx.value(node.inputs[0]), cx.fact(OutletId(node.id)).sizes)]


@lowers(Tile)
def lower_tile(cx: Lowering, node: PulsedNode, op: Tile) -> list[Value]:
    """Copies side by side."""
    x = cx.value(node.inputs[0])
    outlet = OutletId(node.id)
    target = cx.new(outlet)
    repeats = [int(times) for times in op.repeats]
    shape = [n for times, size in zip(repeats, x.shape) for n in (times, size)]
    inside = [n for size, step in zip(x.shape, target.strides) for n in (step * size, step)]
    outside = [n for step in x.strides for n in (0, step)]
    cx.copy(x.view(shape, outside), target.view(shape, inside))
    return [target]
