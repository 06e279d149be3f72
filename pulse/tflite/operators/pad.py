"""Padding."""

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.ops.op import PadMode
from pulse.ops.pad import Pad
from pulse.ops.slice import Slice
from pulse.tflite.dilation import PADDED
from pulse.tflite.node import TfliteNode, decoded
from pulse.tflite.operators.shape import moved, require_real
from pulse.tflite.registry import tflite_op

ZERO = TDim.of(0)


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


@tflite_op(PADDED)
def pad_of_dilation(node: TfliteNode) -> OutletId:
    """Padding without the crops that a convolution without padding would leave of it."""
    require_real(node)
    x, rank = moved(node), node.fact(0).rank
    pads, crops = node.dims(1, "padding"), node.dims(2, "crops")
    if len(pads) != len(crops) or len(pads) % 2 or len(pads) > 2 * (rank - 1):
        raise node.error(f"{len(pads)} amounts of padding and {len(crops)} crops for {rank} axes")
    kept = [pad - crop for pad, crop in zip(pads, crops)]
    ends = [(ZERO, ZERO), *zip(kept[::2], kept[1::2])]
    ends += [(ZERO, ZERO)] * (rank - len(ends))
    more = tuple((_above(before), _above(after)) for before, after in ends)
    if any(pair != (ZERO, ZERO) for pair in more):
        x = node.wire(Pad(more), [x], "padded")
    for axis, (before, after) in enumerate(ends):
        if before.prove_ge(0).no or after.prove_ge(0).no:
            size = node.graph.fact(x).shape[axis]
            x = node.wire(Slice(axis, _above(-before), size - _above(-after)), [x], f"cut{axis}")
    return node.finished(x)


def _above(dim: TDim) -> TDim:
    """The dim where it is above 0, else 0."""
    return ZERO if dim.prove_ge(0).no else dim


def _padded(node: TfliteNode, mode: PadMode, fill: float) -> OutletId:
    amounts = node.dims(1, "padding")
    rank = node.fact(0).rank
    if len(amounts) != 2 * rank:
        raise node.error(f"{len(amounts)} amounts of padding for {rank} axes")
    pairs = tuple(zip(amounts[::2], amounts[1::2]))
    if any(amount.is_const and int(amount) < 0 for amount in amounts):
        raise node.error("its padding is negative")
    return node.wire(Pad(pairs, mode, fill), [moved(node)])
