"""Shapes as values, and the same elements in another shape or order, and more of them."""

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.ops.shape import AddAxis, Expand, Reshape, Tile, Transpose
from pulse.tflite.codes import requantize_input
from pulse.tflite.node import TfliteNode
from pulse.tflite.registry import tflite_op


@tflite_op("SHAPE", complex_numbers=True)
def shape(node: TfliteNode) -> OutletId:
    """Return the sizes of a tensor."""
    return node.dims_constant(node.fact(0).shape[: node.own_rank])


@tflite_op("RANK", complex_numbers=True)
def rank(node: TfliteNode) -> OutletId:
    """Return the number of axes."""
    return node.constant(np.array(node.own_rank, np.int64))


@tflite_op("RESHAPE", complex_numbers=True)
def reshape(node: TfliteNode) -> OutletId:
    """Reshape; the shape is an input, or an option of old files."""
    if node.has(1):
        target = node.dims(1, "shape")
    else:
        target = tuple(TDim.of(size) for size in node.integer_list("NewShape", ()))
    if node.input_tensor(0).is_complex:
        target = (*target, TDim.of(2))
    return node.wire(Reshape(target), [requantize_input(node)])


@tflite_op("EXPAND_DIMS", complex_numbers=True)
def expand_dims(node: TfliteNode) -> OutletId:
    """Insert an axis of size 1."""
    return node.wire(
        AddAxis(node.axis(node.integer_at(1, "axis"), node.own_rank + 1)), [requantize_input(node)]
    )


@tflite_op("SQUEEZE", complex_numbers=True)
def squeeze(node: TfliteNode) -> OutletId:
    """Remove axes of size 1: the named ones, or all."""
    count = node.own_rank
    axes = {node.axis(axis, count) for axis in node.integer_list("SqueezeDims", ())}  # LiteRT takes one twice
    return node.name_result(node.remove_axes(requantize_input(node), list(axes) or None, count))


@tflite_op("TRANSPOSE")
def transpose(node: TfliteNode) -> OutletId:
    """Put axes in another order."""
    return node.wire(Transpose(tuple(node.integers(1, "order"))), [requantize_input(node)])


@tflite_op("TILE")
def tile(node: TfliteNode) -> OutletId:
    """Repeat the whole tensor along its axes."""
    return node.wire(Tile(node.dims(1, "repeats")), [requantize_input(node)])


@tflite_op("BROADCAST_TO")
def broadcast_to(node: TfliteNode) -> OutletId:
    """Broadcast to a shape."""
    return node.wire(Expand(node.dims(1, "shape")), [requantize_input(node)])
