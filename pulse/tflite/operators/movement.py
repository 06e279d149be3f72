"""The same elements in another shape or order, and more of them."""

import numpy as np

from pulse.dim import TDim
from pulse.facts import Shape
from pulse.graph import OutletId
from pulse.ops.op import PadMode
from pulse.ops.pad import Pad
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose
from pulse.ops.slice import Slice
from pulse.tflite.codes import requantized
from pulse.tflite.node import TfliteNode, decoded
from pulse.tflite.registry import tflite_op

COMPLEX = "COMPLEX64"


def moved(node: TfliteNode, slot: int = 0, suffix: str = "moved", out: int = 0) -> OutletId:
    """An input as the output has it: the codes of its scale, or numbers."""
    if node.makes[out].coded:
        return requantized(node, slot, suffix, out)
    return node.values(slot) if node.read(slot).coded else node.input(slot)


def parts(node: TfliteNode, slot: int = 0) -> Shape:
    """The last axis of a complex wire, of real and imaginary parts, which the file does not count."""
    return (TDim.of(2),) if node.read(slot).kind == COMPLEX else ()


def own_rank(node: TfliteNode, slot: int = 0) -> int:
    """The axes of an input as the file counts them."""
    return node.fact(slot).rank - len(parts(node, slot))


def require_real(node: TfliteNode) -> None:
    """Raises LoadError where an input is complex."""
    for tensor in node.reads:
        if tensor is not None and tensor.kind == COMPLEX:
            raise node.error("complex numbers are covered between RFFT2D and COMPLEX_ABS, REAL or IMAG")


@tflite_op("RESHAPE")
def reshape(node: TfliteNode) -> OutletId:
    """The shape is an input, or an option of old files."""
    if node.has(1):
        target = node.dims(1, "shape")
    else:
        target = tuple(TDim.of(size) for size in node.integer_list("NewShape", ()))
    return node.wire(Reshape((*target, *parts(node))), [moved(node)])


@tflite_op("EXPAND_DIMS")
def expand_dims(node: TfliteNode) -> OutletId:
    """A new axis of size 1."""
    return node.wire(AddAxis(node.axis(node.whole(1, "axis"), own_rank(node) + 1)), [moved(node)])


@tflite_op("SQUEEZE")
def squeeze(node: TfliteNode) -> OutletId:
    """Axes of size 1 taken away: those that are named, or all."""
    rank, shape = own_rank(node), node.fact(0).shape
    axes = [node.axis(axis, rank) for axis in node.integer_list("SqueezeDims", ())]
    if not axes:
        axes = [axis for axis in range(rank) if shape[axis] == 1]
    x = moved(node)
    for axis in sorted(set(axes), reverse=True):
        x = node.wire(RemoveAxis(axis), [x], f"axis{axis}")
    return node.finished(x)


@tflite_op("TRANSPOSE")
def transpose(node: TfliteNode) -> OutletId:
    """Axes in another order."""
    require_real(node)
    return node.wire(Transpose(tuple(node.integers(1, "order"))), [moved(node)])


@tflite_op("PAD", "PADV2")
def pad(node: TfliteNode) -> OutletId:
    """Zeros, or a number that is given, around a tensor; of codes the code of zero."""
    require_real(node)
    fill = 0.0
    if node.op_type == "PADV2" and node.makes[0].coded:
        stored, made = node.read(2), node.makes[0].quantization
        if stored.data is None or stored.quantization is None or made is None:
            raise node.error("its number to fill with is computed while running; only a constant is covered")
        fill = float(np.rint(decoded(stored).ravel()[0] / made.scale[0]))
    elif node.op_type == "PADV2":
        fill = float(node.scalar(2, "number to fill with"))
    return _padded(node, "constant", fill)


@tflite_op("MIRROR_PAD")
def mirror_pad(node: TfliteNode) -> OutletId:
    """Mirrored frames, with or without the one at the border."""
    require_real(node)
    return _padded(node, "symmetric" if node.integer("Mode", 0) else "reflect", 0.0)


def _padded(node: TfliteNode, mode: PadMode, fill: float) -> OutletId:
    amounts = node.dims(1, "padding")
    rank = node.fact(0).rank
    if len(amounts) != 2 * rank:
        raise node.error(f"{len(amounts)} amounts of padding for {rank} axes")
    pairs = tuple(zip(amounts[::2], amounts[1::2]))
    if any(amount.is_const and int(amount) < 0 for amount in amounts):
        raise node.error("its padding is negative")
    return node.wire(Pad(pairs, mode, fill), [moved(node)])


@tflite_op("TILE")
def tile(node: TfliteNode) -> OutletId:
    """The whole tensor again and again."""
    require_real(node)
    return node.wire(Tile(node.dims(1, "repeats")), [moved(node)])


@tflite_op("BROADCAST_TO")
def broadcast_to(node: TfliteNode) -> OutletId:
    """Stretched to a shape."""
    require_real(node)
    return node.wire(Expand(node.dims(1, "shape")), [moved(node)])


@tflite_op("REVERSE_V2")
def reverse(node: TfliteNode) -> OutletId:
    """Axes from the last entry to the first."""
    require_real(node)
    x, shape = moved(node), node.fact(0).shape
    for axis in node.axes(node.integers(1, "axes"), len(shape)):
        x = node.wire(Slice(axis, shape[axis] - 1, TDim.of(-1), -1), [x], f"axis{axis}")
    return node.finished(x)
