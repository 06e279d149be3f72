"""Changes of shape."""

from collections.abc import Sequence

from pulse.facts import Shape
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.ops.op import broadcast_shapes
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose, resolve_shape, volume


@onnx_op("Reshape")
def reshape(node: NodeContext) -> OutletId:
    """0 copies a dim (unless allowzero), -1 takes what is left."""
    shape = node.fact(0).shape
    target = list(node.dims(1, "shape"))
    if not node.flag("allowzero"):
        for axis, dim in enumerate(target):
            if dim == 0:
                if axis >= len(shape):
                    raise node.error(f"shape copies axis {axis}, the input has {len(shape)} axes")
                target[axis] = shape[axis]
    return _reshape(node, resolve_shape(shape, tuple(target)))


def _reshape(node: NodeContext, target: Shape) -> OutletId:
    return node.input(0) if target == node.fact(0).shape else node.wire(Reshape(target), [node.input(0)])


@onnx_op("Flatten")
def flatten(node: NodeContext) -> OutletId:
    """To two axes: those before ``axis``, and the rest."""
    shape = node.fact(0).shape
    axis = node.integer("axis", 1)
    axis = axis if axis == len(shape) else node.axis(axis, len(shape))
    return _reshape(node, (volume(shape[:axis]), volume(shape[axis:])))


@onnx_op("Transpose")
def transpose(node: NodeContext) -> OutletId:
    """The axes reversed where no order is given."""
    rank = node.fact(0).rank
    return node.wire(Transpose(node.integer_list("perm", range(rank)[::-1])), [node.input(0)])


def _listed_axes(node: NodeContext) -> Sequence[int] | None:
    """Axes: an attribute before opset 13, then an input."""
    if node.opset < 13:
        return node.integer_list("axes") if "axes" in node.attributes else None
    return node.integers(1, "axes") if node.has(1) else None


@onnx_op("Unsqueeze")
def unsqueeze(node: NodeContext) -> OutletId:
    """New axes of size 1, which count in the output."""
    listed = _listed_axes(node)
    if listed is None:
        raise node.error("axes are missing")
    axes = node.axes(listed, node.fact(0).rank + len(listed))
    x = node.input(0)
    for axis in axes:
        x = node.wire(AddAxis(axis), [x], "" if axis == axes[-1] else f"axis{axis}")
    return x


@onnx_op("Squeeze")
def squeeze(node: NodeContext) -> OutletId:
    """Axes of size 1 taken away; all of them where none is listed."""
    shape = node.fact(0).shape
    listed = _listed_axes(node)
    if listed is None:
        listed = [axis for axis, dim in enumerate(shape) if dim == 1]
    x = node.input(0)
    axes = node.axes(listed, len(shape))
    for axis in reversed(axes):
        x = node.wire(RemoveAxis(axis), [x], "" if axis == axes[0] else f"axis{axis}")
    return x


@onnx_op("Expand")
def expand(node: NodeContext) -> OutletId:
    """Broadcast to a shape."""
    shape = node.fact(0).shape
    target = broadcast_shapes([shape, node.dims(1, "shape")], f"{node.wire_name} (Expand)")
    return node.input(0) if target == shape else node.wire(Expand(target), [node.input(0)])


@onnx_op("Tile")
def tile(node: NodeContext) -> OutletId:
    """Repeat along each axis."""
    repeats = node.dims(1, "repeats")
    return (
        node.input(0) if all(times == 1 for times in repeats) else node.wire(Tile(repeats), [node.input(0)])
    )
