"""Shapes as tensors, and changes of shape."""

from collections.abc import Iterator, Sequence

from pulse.dim import ONE
from pulse.facts import I64, Shape, volume
from pulse.graph import OutletId
from pulse.infer.fact import Dim
from pulse.infer.inference_node import InferenceNode, same_type_and_rank
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import (
    AxisMapping,
    FactRelation,
    HasRank,
    HasSizes,
    HasType,
    RankSum,
    SameRank,
    SameSize,
    SameType,
)
from pulse.infer.shapes import SameCount
from pulse.infer.wire_facts import Axis
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.dims import broadcast_shapes
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose, resolve_shape
from pulse.support.wording import count_of


@onnx_op("Reshape")
def reshape(node: NodeContext) -> OutletId:
    """Reshape: 0 copies a dim (unless allowzero), -1 is inferred."""
    in_shape = node.fact(0).shape
    target = list(node.dims(1, "shape"))
    if not node.flag("allowzero"):
        for axis, dim in enumerate(target):
            if dim == 0:
                if axis >= len(in_shape):
                    raise node.error(
                        f"shape copies axis {axis}, the input has {count_of(len(in_shape), 'axis', 'axes')}"
                    )
                target[axis] = in_shape[axis]
    return _reshape(node, resolve_shape(in_shape, tuple(target)))


def _reshape(node: NodeContext, target: Shape) -> OutletId:
    return node.input(0) if target == node.fact(0).shape else node.wire(Reshape(target), [node.input(0)])


@onnx_op("Flatten")
def flatten(node: NodeContext) -> OutletId:
    """Reshape to two axes: those before ``axis``, and the rest."""
    in_shape = node.fact(0).shape
    axis = node.integer("axis", 1)
    axis = axis if axis == len(in_shape) else node.axis(axis, len(in_shape))
    return _reshape(node, (volume(in_shape[:axis]), volume(in_shape[axis:])))


@onnx_op("Transpose")
def transpose(node: NodeContext) -> OutletId:
    """Transpose; without an order the axes are reversed."""
    rank = node.fact(0).rank
    return node.wire(Transpose(node.integer_list("perm", range(rank)[::-1])), [node.input(0)])


def _read_axes(node: NodeContext) -> Sequence[int] | None:
    """Return axes: an attribute before opset 13, then an input."""
    if node.opset < 13:
        return node.integer_list("axes") if "axes" in node.attributes else None
    return node.integers(1, "axes") if node.has(1) else None


@onnx_op("Unsqueeze")
def unsqueeze(node: NodeContext) -> OutletId:
    """Insert axes of size 1, which count in the output."""
    axis_numbers = _read_axes(node)
    if axis_numbers is None:
        raise node.error("axes are missing")
    axes = node.axes(axis_numbers, node.fact(0).rank + len(axis_numbers))
    x = node.input(0)
    for axis in axes:
        x = node.wire(AddAxis(axis), [x], "" if axis == axes[-1] else f"axis{axis}")
    return x


@onnx_op("Squeeze")
def squeeze(node: NodeContext) -> OutletId:
    """Remove axes of size 1; all of them if none is listed."""
    return node.remove_axes(node.input(0), _read_axes(node), node.fact(0).rank)


@onnx_op("Expand")
def expand(node: NodeContext) -> OutletId:
    """Broadcast to a shape."""
    in_shape = node.fact(0).shape
    target = broadcast_shapes([in_shape, node.dims(1, "shape")], f"{node.wire_name} (Expand)")
    return node.input(0) if target == in_shape else node.wire(Expand(target), [node.input(0)])


@onnx_op("Tile")
def tile(node: NodeContext) -> OutletId:
    """Repeat along each axis."""
    repeats = node.dims(1, "repeats")
    return (
        node.input(0) if all(times == 1 for times in repeats) else node.wire(Tile(repeats), [node.input(0)])
    )


@onnx_op("Shape")
def shape(node: NodeContext) -> OutletId:
    """Return the dims of a tensor, including symbolic ones."""
    dims = node.fact(0).shape
    return node.dims_constant(dims[node.integer("start", 0) : node.integer("end", len(dims))])


@onnx_op("Size")
def element_count(node: NodeContext) -> OutletId:
    """Return the number of elements."""
    return node.dim_constant(volume(node.fact(0).shape))


@rule("Shape", uniform=True)
def infer_shape(node: InferenceNode) -> Iterator[FactRelation]:
    """One i64 for each axis."""
    yield HasType([node.output], I64)
    yield HasRank([node.output], 1)


@rule("Size")
def infer_size(node: InferenceNode) -> Iterator[FactRelation]:
    """One i64."""
    yield HasType([node.output], I64)
    yield HasRank([node.output], 0)


@rule("Expand")
def infer_expand(node: InferenceNode) -> Iterator[FactRelation]:
    """Broadcast to a shape that is listed, which may have fewer axes, or sizes of 1."""
    x, y = node.input(0), node.output
    yield SameType([x, y])
    rank, count, sizes = node.rank(x), node.count(1), node.sizes(1)
    if rank is None or count is None:
        return
    yield HasRank([y], max(rank, count))
    if sizes is not None:
        fixed_sizes = tuple(size if size is not None and size != 1 else None for size in sizes)
        yield HasSizes(y, (*(None,) * (rank - count), *fixed_sizes))
        ones = [axis for axis in range(-count, 0) if sizes[axis] is not None and fixed_sizes[axis] is None]
        for axis in (*range(-rank, -count), *(axis for axis in ones if -axis <= rank)):
            yield SameSize([Axis(x, axis), Axis(y, axis)])


@rule("Transpose")
def infer_transpose(node: InferenceNode) -> Iterator[FactRelation]:
    """Axis i of y is axis perm[i] of x; the axes reversed if there is no perm."""
    x, y = node.input(0), node.output
    yield SameType([x, y])
    if "perm" in node.attributes:
        yield HasRank([x, y], len(node.integer_list("perm")))
    yield SameRank([x, y])
    rank = node.rank(x)
    if rank is not None:
        order = node.integer_list("perm", range(rank)[::-1])
        yield AxisMapping(y, x, [node.axis(axis, rank) for axis in order])


@rule("Unsqueeze", parts=(0,))
def infer_unsqueeze(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the axes; new ones of size 1 count in the output."""
    x, y = node.input(0), node.output
    yield SameType([x, y])
    axes = node.find_axes(since=13)
    if axes is None:
        axis_count = node.count(1)
        if axis_count is not None:
            yield RankSum(y, [x], axis_count)
        return
    yield from _relate_squeezed(node, y, x, axes)


@rule("Squeeze", parts=(0,))
def infer_squeeze(node: InferenceNode) -> Iterator[FactRelation]:
    """Axes of size 1 taken away; all of them if none is listed, which needs every size of the input."""
    x, y = node.input(0), node.output
    yield SameType([x, y])
    axes = node.find_axes(since=13)
    if not axes:
        return
    yield from _relate_squeezed(node, x, y, axes)


def _relate_squeezed(
    node: InferenceNode, wide: OutletId, narrow: OutletId, listed_axes: Sequence[int]
) -> Iterator[FactRelation]:
    """Relate ``narrow`` to ``wide``: it has the same axes without some of size 1."""
    yield RankSum(wide, [narrow], len(listed_axes))
    rank = node.rank(wide)
    if rank is None:
        return
    axes = node.axes(listed_axes, rank)
    dims: list[Dim] = [ONE if axis in axes else None for axis in range(rank)]
    yield HasSizes(wide, tuple(dims))
    yield AxisMapping(narrow, wide, [axis for axis in range(rank) if axis not in axes])


@rule("Flatten")
def infer_flatten(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate two axes with those before ``axis``, and the rest."""
    x, y = node.input(0), node.output
    yield SameType([x, y])
    yield HasRank([y], 2)
    rank = node.rank(x)
    if rank is not None:
        axis = node.integer("axis", 1)
        axis = axis if axis == rank else node.axis(axis, rank)
        yield SameCount([Axis(x, index) for index in range(axis)], [Axis(y, 0)])
        yield SameCount([Axis(x, index) for index in range(axis, rank)], [Axis(y, 1)])


@rule("Reshape")
def infer_reshape(node: InferenceNode) -> Iterator[FactRelation]:
    """The entries stay; 0 copies a size (unless allowzero), -1 is the remaining size."""
    x, y = node.input(0), node.output
    yield SameType([x, y])
    sizes, count = node.sizes(1), node.count(1)
    if count is not None:
        yield HasRank([y], count)
    if sizes is not None:
        copies = not node.flag("allowzero")
        yield HasSizes(y, tuple(size if _is_size(size, copies) else None for size in sizes))
        for axis in (axis for axis, size in enumerate(sizes) if copies and size is not None and size == 0):
            yield SameSize([Axis(x, axis), Axis(y, axis)])
    ranks = node.rank(x), node.rank(y)
    if ranks[0] is not None and ranks[1] is not None:
        yield SameCount(
            [Axis(x, axis) for axis in range(ranks[0])], [Axis(y, axis) for axis in range(ranks[1])]
        )


def _is_size(size: Dim, copies: bool) -> bool:
    """Return whether an entry of a target shape is the size itself."""
    return size is not None and size != -1 and not (copies and size == 0)


rule("Tile", uniform=True)(same_type_and_rank)


@writes(Reshape)
def write_reshape(w: NodeWriter, op: Reshape) -> str:
    """Write the sizes of a pulse; in an offline model, a size that is not a number is -1, or 0 to copy it."""
    before, sizes = w.input_facts[0].shape, w.output_facts[0].shape
    if all(size.is_const for size in sizes):
        return w.reshape(w.inputs[0], w.output_shape())
    stays = [
        index < len(before) and before[index] == size and not size.is_const
        for index, size in enumerate(sizes)
    ]
    open_axes = [index for index, size in enumerate(sizes) if not size.is_const and not stays[index]]
    if len(open_axes) > 1 or any(size == 0 for size in sizes):
        raise w.error(
            f"more than one size of {list(map(str, sizes))} cannot be expressed in ONNX; write the model in pulses"
        )
    target = [
        0 if stays[index] else -1 if index in open_axes else int(size) for index, size in enumerate(sizes)
    ]
    return w.emit("Reshape", [w.inputs[0], w.integers(target, "shape")])


writes(Transpose)(lambda w, op: w.transpose(w.inputs[0], op.perm))
writes(AddAxis)(lambda w, op: w.add_axis(w.inputs[0], op.axis))
writes(RemoveAxis)(lambda w, op: w.remove_axis(w.inputs[0], op.axis))
writes(Expand)(lambda w, _: w.emit("Expand", [w.inputs[0], w.integers(w.output_shape(), "shape")]))


@writes(Tile)
def write_tile(w: NodeWriter, op: Tile) -> str:
    """Tile with unchanged repeats."""
    return w.emit("Tile", [w.inputs[0], w.integers([int(times) for times in op.repeats], "repeats")])
