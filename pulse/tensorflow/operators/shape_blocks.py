"""Blocks moved between axes."""

from pulse.dim import TDim
from pulse.facts import Shape
from pulse.graph import OutletId
from pulse.onnx.operators.slice import slice_op
from pulse.ops.conv import NO_PAD
from pulse.ops.pad import Pad
from pulse.ops.shape import Reshape, Transpose
from pulse.tensorflow.context import TensorflowNode
from pulse.tensorflow.operators.pad import pairs_of
from pulse.tensorflow.registry import tensorflow_op


def _block(node: TensorflowNode, slot: int) -> list[int]:
    block = node.integers(slot, "block_shape")
    if any(size < 1 for size in block) or len(block) >= node.fact(0).rank:
        raise node.error(f"blocks of {block} do not fit {node.fact(0)}")
    return block


@tensorflow_op("SpaceToBatchND")
def space_to_batch(node: TensorflowNode) -> OutletId:
    """The positions in a block of spatial axes moved to the batch, outermost."""
    block = _block(node, 1)
    count, rank = len(block), node.fact(0).rank
    pads = [NO_PAD, *pairs_of(node, 2, count)]
    pads += [NO_PAD] * (rank - len(pads))
    x = node.input(0)
    if any(pair != NO_PAD for pair in pads):
        x = node.wire(Pad(tuple(pads)), [x], "padded")
    shape = node.graph.fact(x).shape
    block_shape: list[TDim] = [shape[0]]
    for size, step in zip(shape[1:], block):
        block_shape += [size // step, TDim.of(step)]
    trailing_shape = shape[1 + count :]
    x = node.wire(Reshape((*block_shape, *trailing_shape)), [x], "blocks")
    inner = [2 + 2 * index for index in range(count)]
    outer = [1 + 2 * index for index in range(count)]
    order = (*inner, 0, *outer, *range(1 + 2 * count, 1 + 2 * count + len(trailing_shape)))
    x = node.wire(Transpose(order), [x], "moved")
    batch = shape[0]
    for step in block:
        batch = batch * step
    target: Shape = (batch, *(size // step for size, step in zip(shape[1:], block)), *trailing_shape)
    return node.wire(Reshape(target), [x])


@tensorflow_op("BatchToSpaceND")
def batch_to_space(node: TensorflowNode) -> OutletId:
    """Places in a block moved from the batch back to the spatial axes, without the crops."""
    block = _block(node, 1)
    count, shape = len(block), node.fact(0).shape
    crops = pairs_of(node, 2, count)
    block_size = 1
    for step in block:
        block_size *= step
    batch, trailing_shape = shape[0] // block_size, shape[1 + count :]
    x = node.wire(Reshape((*(TDim.of(step) for step in block), batch, *shape[1:])), [node.input(0)], "blocks")
    order = [count]
    for index in range(count):
        order += [count + 1 + index, index]
    order += list(range(2 * count + 1, 2 * count + 1 + len(trailing_shape)))
    x = node.wire(Transpose(tuple(order)), [x], "moved")
    sizes = [size * step for size, step in zip(shape[1:], block)]
    x = node.wire(Reshape((batch, *sizes, *trailing_shape)), [x], "whole")
    for axis, (size, (before, after)) in enumerate(zip(sizes, crops), 1):
        op = slice_op(node, axis, size, before, size - after, 1)
        if op is not None:
            x = node.wire(op, [x], f"cut{axis}")
    return node.name_result(x)


@tensorflow_op("SpaceToDepth", "DepthToSpace")
def blocks(node: TensorflowNode) -> OutletId:
    """Places in a block of an image moved to its channels, or back; NHWC."""
    step = node.integer("block_size")
    if node.text("data_format", "NHWC") != "NHWC" or node.fact(0).rank != 4 or step < 2:
        raise node.error(f"only images in NHWC and blocks of 2 or more are supported, got {node.fact(0)}")
    n, h, w, c = node.fact(0).shape
    size = TDim.of(step)
    if node.op_type == "SpaceToDepth":
        block_shape, order = (n, h // step, size, w // step, size, c), (0, 1, 3, 2, 4, 5)
        target: Shape = (n, h // step, w // step, c * step * step)
    else:
        block_shape, order = (n, h, w, size, size, c // (step * step)), (0, 1, 3, 2, 4, 5)
        target = (n, h * step, w * step, c // (step * step))
    x = node.wire(Reshape(block_shape), [node.input(0)], "blocks")
    return node.wire(Reshape(target), [node.wire(Transpose(order), [x], "moved")])
