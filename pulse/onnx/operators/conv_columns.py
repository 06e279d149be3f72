"""Blocks laid over each other into an image: a transposed convolution whose kernels are single ones."""

import math

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.operators.conv import attribute_pads, spatial_list
from pulse.onnx.registry import onnx_op
from pulse.ops.conv import ConvTranspose
from pulse.ops.shape import Reshape, exact_quotient


@onnx_op("Col2Im")
def col2im(node: NodeContext) -> OutletId:
    """Columns [N, C * block, L] summed where their blocks overlap in an image [N, C, image]."""
    x = node.fact(0)
    if x.rank != 3:
        raise node.error(f"{x} must have 3 axes")
    image, block = node.dims(1, "image_shape"), node.integers(2, "block_shape")
    rank = len(block)
    if len(image) != rank or rank == 0:
        raise node.error(f"an image of {len(image)} axes does not fit blocks of {rank}")
    strides, dilations = spatial_list(node, "strides", rank, 1), spatial_list(node, "dilations", rank, 1)
    pads = attribute_pads(node, rank)
    batch, columns, blocks = x.shape
    size = math.prod(block)
    channels = int(exact_quotient([columns], [TDim.of(size)], f"{node.wire_name} (Col2Im)"))
    spans = [(k - 1) * dilation + 1 for k, dilation in zip(block, dilations)]
    covered = [goal + sum(pad, TDim.of(0)) - span for goal, pad, span in zip(image, pads, spans)]
    counts = (
        tuple(extent // stride + 1 for extent, stride in zip(covered, strides)) if rank > 1 else (blocks,)
    )
    extra = [extent - (count - 1) * stride for extent, count, stride in zip(covered, counts, strides)]
    if not all(more.is_const and int(more) >= 0 for more in extra):
        raise node.error(f"{blocks} blocks do not cover an image of {', '.join(map(str, image))}")
    spread = (
        node.wire(Reshape((batch, columns, *counts)), [node.input(0)], "blocks")
        if rank > 1
        else node.input(0)
    )
    ones: Array = np.tile(np.eye(size, dtype=x.dtype), (channels, 1)).reshape(channels * size, 1, *block)
    op = ConvTranspose(strides, dilations, pads, tuple(int(more) for more in extra), channels)
    return node.wire(op, [spread, node.constant(ones, "ones")])
