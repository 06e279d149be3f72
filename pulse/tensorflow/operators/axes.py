"""Padding, and blocks moved between axes."""

from pulse.dim import TDim
from pulse.facts import Shape
from pulse.graph import OutletId
from pulse.onnx.operators.slice import slice_op
from pulse.ops.pad import Pad, PadMode, Pads
from pulse.ops.shape import Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.tensorflow.context import TensorflowNode
from pulse.tensorflow.read.dilation import PADDED
from pulse.tensorflow.registry import tensorflow_op

MODES: dict[str, PadMode] = {"REFLECT": "reflect", "SYMMETRIC": "symmetric"}
ZERO = TDim.of(0)


def _pairs(node: TensorflowNode, slot: int, rank: int) -> list[tuple[TDim, TDim]]:
    listed = node.dims(slot, "paddings")
    if len(listed) != 2 * rank:
        raise node.error(f"{len(listed)} paddings for {rank} axes")
    return list(zip(listed[::2], listed[1::2]))


def _require_outside(node: TensorflowNode, pads: list[tuple[TDim, TDim]]) -> None:
    if any(dim.prove_ge(0).no for pair in pads for dim in pair):
        raise node.error(f"negative paddings {[(str(a), str(b)) for a, b in pads]}")


@tensorflow_op("Pad", "PadV2", "MirrorPad")
def pad(node: TensorflowNode) -> OutletId:
    """Frames added at the ends of axes."""
    own = node.fact(0).rank - node.is_complex()
    pads = _pairs(node, 1, own)
    _require_outside(node, pads)
    pads += [(ZERO, ZERO)] * node.is_complex()
    mode: PadMode = "constant"
    fill = float(node.scalar(2, "value")) if node.op_type == "PadV2" else 0.0
    if node.op_type == "MirrorPad":
        told = node.text("mode")
        if told not in MODES:
            raise node.error(f"mode {told!r} is not covered")
        mode = MODES[told]
    if all(pair == (ZERO, ZERO) for pair in pads):
        return node.input(0)
    return node.wire(Pad(tuple(pads), mode, fill), [node.input(0)])


@tensorflow_op(PADDED)
def pad_of_dilation(node: TensorflowNode) -> OutletId:
    """Padding without the crops that a convolution without padding would leave of it."""
    x, rank = node.input(0), node.fact(0).rank
    paddings, crops = node.dims(1, "paddings"), node.dims(2, "crops")
    if len(paddings) != len(crops) or len(paddings) % 2 or len(paddings) > 2 * (rank - 1):
        raise node.error(f"{len(paddings)} paddings and {len(crops)} crops for {node.fact(0)}")
    kept = [before - crop for before, crop in zip(paddings, crops)]
    ends = [(ZERO, ZERO), *zip(kept[::2], kept[1::2])]
    ends += [(ZERO, ZERO)] * (rank - len(ends))
    more: Pads = tuple((_above(a), _above(b)) for a, b in ends)
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


def _block(node: TensorflowNode, slot: int) -> list[int]:
    block = node.integers(slot, "block_shape")
    if any(size < 1 for size in block) or len(block) >= node.fact(0).rank:
        raise node.error(f"blocks of {block} do not fit {node.fact(0)}")
    return block


@tensorflow_op("SpaceToBatchND")
def space_to_batch(node: TensorflowNode) -> OutletId:
    """The places in a block of spatial axes moved to the batch, outermost."""
    block = _block(node, 1)
    count, rank = len(block), node.fact(0).rank
    pads = [(ZERO, ZERO), *_pairs(node, 2, count)]
    pads += [(ZERO, ZERO)] * (rank - len(pads))
    x = node.input(0)
    if any(pair != (ZERO, ZERO) for pair in pads):
        x = node.wire(Pad(tuple(pads)), [x], "padded")
    shape = node.graph.fact(x).shape
    split: list[TDim] = [shape[0]]
    for size, step in zip(shape[1:], block):
        split += [size // step, TDim.of(step)]
    rest = shape[1 + count :]
    x = node.wire(Reshape((*split, *rest)), [x], "blocks")
    inner = [2 + 2 * place for place in range(count)]
    outer = [1 + 2 * place for place in range(count)]
    order = (*inner, 0, *outer, *range(1 + 2 * count, 1 + 2 * count + len(rest)))
    x = node.wire(Transpose(order), [x], "moved")
    batch = shape[0]
    for step in block:
        batch = batch * step
    merged: Shape = (batch, *(size // step for size, step in zip(shape[1:], block)), *rest)
    return node.wire(Reshape(merged), [x])


@tensorflow_op("BatchToSpaceND")
def batch_to_space(node: TensorflowNode) -> OutletId:
    """Places in a block moved from the batch back to the spatial axes, without the crops."""
    block = _block(node, 1)
    count, shape = len(block), node.fact(0).shape
    crops = _pairs(node, 2, count)
    whole = 1
    for step in block:
        whole *= step
    batch, rest = shape[0] // whole, shape[1 + count :]
    x = node.wire(Reshape((*(TDim.of(step) for step in block), batch, *shape[1:])), [node.input(0)], "blocks")
    order = [count]
    for place in range(count):
        order += [count + 1 + place, place]
    order += list(range(2 * count + 1, 2 * count + 1 + len(rest)))
    x = node.wire(Transpose(tuple(order)), [x], "moved")
    sizes = [size * step for size, step in zip(shape[1:], block)]
    x = node.wire(Reshape((batch, *sizes, *rest)), [x], "whole")
    for axis, (size, (before, after)) in enumerate(zip(sizes, crops), 1):
        op = slice_op(node, axis, size, before, size - after, 1)
        if op is not None:
            x = node.wire(op, [x], f"cut{axis}")
    return node.finished(x)


@tensorflow_op("SpaceToDepth", "DepthToSpace")
def blocks(node: TensorflowNode) -> OutletId:
    """Places in a block of an image moved to its channels, or back; NHWC."""
    step = node.integer("block_size")
    if node.text("data_format", "NHWC") != "NHWC" or node.fact(0).rank != 4 or step < 2:
        raise node.error(f"only images in NHWC and blocks of 2 or more are covered, got {node.fact(0)}")
    n, h, w, c = node.fact(0).shape
    size = TDim.of(step)
    if node.op_type == "SpaceToDepth":
        split, order = (n, h // step, size, w // step, size, c), (0, 1, 3, 2, 4, 5)
        merged: Shape = (n, h // step, w // step, c * step * step)
    else:
        split, order = (n, h, w, size, size, c // (step * step)), (0, 1, 3, 2, 4, 5)
        merged = (n, h * step, w * step, c // (step * step))
    x = node.wire(Reshape(split), [node.input(0)], "blocks")
    return node.wire(Reshape(merged), [node.wire(Transpose(order), [x], "moved")])
