"""Shapes as values, and the same elements in another shape or order, and more of them."""

import numpy as np

from pulse.dim import TDim
from pulse.facts import Shape
from pulse.graph import OutletId
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose
from pulse.tflite.codes import requantize
from pulse.tflite.node import TfliteNode
from pulse.tflite.registry import tflite_op


@tflite_op("SHAPE")
def shape(node: TfliteNode) -> OutletId:
    """Return the sizes of a tensor."""
    return node.dims_constant(node.fact(0).shape[: own_rank(node)])


@tflite_op("RANK")
def rank(node: TfliteNode) -> OutletId:
    """Return the number of axes."""
    return node.constant(np.array(own_rank(node), np.int64))


COMPLEX = "COMPLEX64"


def requantize_input(node: TfliteNode, slot: int = 0, suffix: str = "moved", out: int = 0) -> OutletId:
    """Return an input as the output has it: the codes of its scale, or numbers."""
    if node.output_tensors[out].has_codes:
        return requantize(node, slot, suffix, out)
    return node.values(slot) if node.input_tensor(slot).has_codes else node.input(slot)


def parts(node: TfliteNode, slot: int = 0) -> Shape:
    """Return the last axis of a complex wire, of real and imaginary parts, which the file does not count."""
    return (TDim.of(2),) if node.input_tensor(slot).type_name == COMPLEX else ()


def own_rank(node: TfliteNode) -> int:
    """Return the axes of the first input as the file counts them."""
    return node.fact(0).rank - len(parts(node, 0))


def require_real(node: TfliteNode) -> None:
    """Raise LoadError if an input is complex."""
    for tensor in node.input_tensors:
        if tensor is not None and tensor.type_name == COMPLEX:
            raise node.error("complex numbers are supported between RFFT2D and COMPLEX_ABS, REAL or IMAG")


@tflite_op("RESHAPE")
def reshape(node: TfliteNode) -> OutletId:
    """Reshape; the shape is an input, or an option of old files."""
    if node.has(1):
        target = node.dims(1, "shape")
    else:
        target = tuple(TDim.of(size) for size in node.integer_list("NewShape", ()))
    return node.wire(Reshape((*target, *parts(node))), [requantize_input(node)])


@tflite_op("EXPAND_DIMS")
def expand_dims(node: TfliteNode) -> OutletId:
    """Insert an axis of size 1."""
    return node.wire(
        AddAxis(node.axis(node.integer_at(1, "axis"), own_rank(node) + 1)), [requantize_input(node)]
    )


@tflite_op("SQUEEZE")
def squeeze(node: TfliteNode) -> OutletId:
    """Remove axes of size 1: the named ones, or all."""
    in_rank, in_shape = own_rank(node), node.fact(0).shape
    axes = [node.axis(axis, in_rank) for axis in node.integer_list("SqueezeDims", ())]
    if not axes:
        axes = [axis for axis in range(in_rank) if in_shape[axis] == 1]
    x = requantize_input(node)
    for axis in sorted(set(axes), reverse=True):
        x = node.wire(RemoveAxis(axis), [x], f"axis{axis}")
    return node.name_result(x)


@tflite_op("TRANSPOSE")
def transpose(node: TfliteNode) -> OutletId:
    """Put axes in another order."""
    require_real(node)
    return node.wire(Transpose(tuple(node.integers(1, "order"))), [requantize_input(node)])


@tflite_op("TILE")
def tile(node: TfliteNode) -> OutletId:
    """Repeat the whole tensor along its axes."""
    require_real(node)
    return node.wire(Tile(node.dims(1, "repeats")), [requantize_input(node)])


@tflite_op("BROADCAST_TO")
def broadcast_to(node: TfliteNode) -> OutletId:
    """Broadcast to a shape."""
    require_real(node)
    return node.wire(Expand(node.dims(1, "shape")), [requantize_input(node)])
