"""Shapes as tensors, and changes of shape."""

import numpy as np

from pulse.dim import TDim
from pulse.facts import Shape, volume
from pulse.graph import OutletId
from pulse.onnx.wiring import wire_onnx
from pulse.ops.dims import broadcast_shapes
from pulse.ops.shape import AddAxis, Reshape, Tile, resolve_shape
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.operators.shape_delayed import delay_rows
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("Shape")
def shape(node: TensorflowNode) -> OutletId:
    """Return the dims of a tensor, including symbolic ones."""
    return node.dims_constant(node.fact(0).shape)


@tensorflow_op("ShapeN")
def shapes(node: TensorflowNode) -> list[OutletId]:
    """Return the dims of each tensor."""
    return [
        node.dims_constant(node.graph.fact(x).shape, f"shape{index}")
        for index, x in enumerate(node.given_inputs())
    ]


@tensorflow_op("Size")
def size(node: TensorflowNode) -> OutletId:
    """Return the number of elements."""
    return node.dim_constant(volume(node.fact(0).shape))


@tensorflow_op("Rank")
def rank(node: TensorflowNode) -> OutletId:
    """Return the number of axes."""
    return node.constant(np.array(node.fact(0).rank, np.int64))


@tensorflow_op("Reshape", complex_numbers=True)
def reshape(node: TensorflowNode) -> OutletId:
    """Reshape; -1 is the remaining size. Changes that only add or remove axes of size 1 are wired as such."""
    source, sizes = node.fact(0).shape, node.dims(1, "shape")
    if node.is_complex():
        sizes = (*sizes, TDim.of(2))
    target = resolve_shape(source, sizes)
    if target == source:
        return node.input(0)
    new_axes = _added_axes(source, target)
    if not new_axes:
        delayed = delay_rows(node, node.input(0), target)
        return delayed if delayed is not None else node.wire(Reshape(target), [node.input(0)])
    x = node.input(0)
    for axis in new_axes:
        x = node.wire(AddAxis(axis), [x], "" if axis == new_axes[-1] else f"axis{axis}")
    return x


def _added_axes(source: Shape, target: Shape) -> list[int]:
    """Return the new axes of the target if the reshape only adds axes of size 1."""
    new_axes: list[int] = []
    source_axis = 0
    for axis, dim in enumerate(target):
        if source_axis < len(source) and source[source_axis] == dim:
            source_axis += 1
        elif dim == 1:
            new_axes.append(axis)
        else:
            return []
    return new_axes if source_axis == len(source) else []


@tensorflow_op("ExpandDims", complex_numbers=True)
def expand_dims(node: TensorflowNode) -> OutletId:
    """Insert an axis of size 1."""
    in_rank = node.fact(0).rank - node.is_complex()
    return node.wire(AddAxis(node.axis(node.integer_at(1, "axis"), in_rank + 1)), [node.input(0)])


@tensorflow_op("Squeeze", complex_numbers=True)
def squeeze(node: TensorflowNode) -> OutletId:
    """Remove the axes of size 1 that the node lists, or all of them if it lists none."""
    axes = node.integer_list("squeeze_dims", ()) or node.integer_list("axis", ()) or None
    return node.remove_axes(node.input(0), axes, node.fact(0).rank - node.is_complex())


@tensorflow_op("Transpose", complex_numbers=True)
def transpose(node: TensorflowNode) -> OutletId:
    """Put axes in another order."""
    perm = node.integers(1, "perm")
    if node.is_complex():
        perm.append(len(perm))
    count = node.fact(0).rank
    return node.transpose(node.input(0), [node.axis(axis, count) for axis in perm])


@tensorflow_op("BroadcastTo")
def broadcast_to(node: TensorflowNode) -> OutletId:
    """Broadcast to a shape."""
    return wire_onnx(node, "Expand", [node.input(0), node.input(1)])


@tensorflow_op("BroadcastArgs")
def broadcast_args(node: TensorflowNode) -> OutletId:
    """Return the shape that two shapes are broadcast to."""
    return node.dims_constant(
        broadcast_shapes([node.dims(0, "shape"), node.dims(1, "shape")], node.wire_name)
    )


@tensorflow_op("Tile", complex_numbers=True)
def tile(node: TensorflowNode) -> OutletId:
    """Repeat along each axis."""
    repeats = node.dims(1, "multiples")
    if node.is_complex():
        repeats = (*repeats, TDim.of(1))
    return (
        node.input(0) if all(times == 1 for times in repeats) else node.wire(Tile(repeats), [node.input(0)])
    )
