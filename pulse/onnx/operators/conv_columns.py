"""Overlap-add of blocks into an image (Col2Im).

Along one axis, blocks are cut into parts of one stride; part k is delayed by k blocks, and the parts are added. Along
several, it is a transposed convolution whose kernels are single ones.
"""

import math

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.operators.conv import attribute_pads, spatial_list
from pulse.onnx.operators.conv_zero_taps import count_zero_taps
from pulse.onnx.registry import onnx_op
from pulse.ops.conv import ConvTranspose, kernel_spans
from pulse.ops.dims import simplest_max
from pulse.ops.pad import Pad
from pulse.ops.shape import Reshape, Transpose, exact_quotient
from pulse.ops.slice import Slice
from pulse.support.wording import count_of


@onnx_op("Col2Im")
def col2im(node: NodeContext) -> OutletId:
    """Sum columns [N, C * block, L] where their blocks overlap in an image [N, C, image]."""
    x = node.fact(0)
    node.require(x.rank == 3, f"{x} must have 3 axes")
    image, block = node.dims(1, "image_shape"), node.integers(2, "block_shape")
    rank = len(block)
    if len(image) != rank or rank == 0:
        raise node.error(f"an image of {count_of(len(image), 'axis', 'axes')} does not fit blocks of {rank}")
    strides, dilations = spatial_list(node, "strides", rank, 1), spatial_list(node, "dilations", rank, 1)
    pads = attribute_pads(node, rank)
    batch, columns, blocks = x.shape
    size = math.prod(block)
    channels = int(exact_quotient([columns], [TDim.of(size)], f"{node.wire_name} (Col2Im)"))
    spans = kernel_spans(block, dilations)
    axes = [axis for axis in range(rank) if (block[axis], image[axis], *pads[axis]) != (1, 1, 0, 0)]
    if len(axes) == 1 and dilations[axes[0]] == 1:
        (axis,) = axes
        lengths = [TDim.of(1)] * rank
        lengths[axis] = image[axis]
        zero_taps = count_zero_taps(node.graph, node.input(0), blocks, block[axis])
        signals = overlap_add(
            node=node,
            x=node.input(0),
            channels=channels,
            block=block[axis],
            stride=strides[axis],
            before=int(pads[axis][0]),
            image=image[axis],
            zero_taps=zero_taps,
        )
        return node.name_result(node.wire(Reshape((batch, TDim.of(channels), *lengths)), [signals], "image"))
    extents = [goal + sum(pad, TDim.of(0)) - span for goal, pad, span in zip(image, pads, spans)]
    counts = (
        tuple(extent // stride + 1 for extent, stride in zip(extents, strides)) if rank > 1 else (blocks,)
    )
    extra = [extent - (count - 1) * stride for extent, count, stride in zip(extents, counts, strides)]
    if not all(frames.is_const and int(frames) >= 0 for frames in extra):
        raise node.error(f"{blocks} blocks do not cover an image of {', '.join(map(str, image))}")
    spread = (
        node.wire(Reshape((batch, columns, *counts)), [node.input(0)], "blocks")
        if rank > 1
        else node.input(0)
    )
    ones: Array = np.tile(np.eye(size, dtype=x.dtype), (channels, 1)).reshape(channels * size, 1, *block)
    op = ConvTranspose(strides, dilations, pads, tuple(int(frames) for frames in extra), channels)
    return node.wire(op, [spread, node.constant(ones, "ones")])


def overlap_add(
    node: NodeContext,
    x: OutletId,
    channels: int,
    block: int,
    stride: int,
    before: int,
    image: TDim,
    zero_taps: int,
) -> OutletId:
    """Return blocks [N, C * block, L] as C signals [N, C, image] without the first ``before`` frames.

    zero_taps  elements at the start of each block that are zeros: frames do not wait for the block that begins there
    """
    batch, _, blocks = node.graph.fact(x).shape
    parts = -(-block // stride)
    x = node.wire(Reshape((batch, TDim.of(channels), TDim.of(block), blocks)), [x], "blocks")
    skipped = min(zero_taps, stride)
    leading = max(0, skipped - before)
    if skipped:
        x = node.wire(Slice(2, TDim.of(skipped), TDim.of(block)), [x], "nonzero")
        block, before, image = block - skipped, before + leading - skipped, image - leading
    if parts * stride > block:
        x = node.wire(Pad(_pads(4, 2, TDim.of(0), TDim.of(parts * stride - block))), [x], "filled")
    total: OutletId | None = None
    for part in range(parts):
        first = TDim.of(part * stride)
        piece = node.wire(Slice(2, first, first + stride), [x], f"part{part}")
        pads_later = _pads(4, 3, TDim.of(part), TDim.of(parts - 1 - part))
        piece = node.wire(Pad(pads_later), [piece], f"delayed{part}")
        total = piece if total is None else node.apply("add", total, piece, suffix=f"sum{part}")
    assert total is not None
    rows = node.wire(Transpose((0, 1, 3, 2)), [total], "rows")
    size = (blocks + parts - 1) * stride
    line = node.wire(Reshape((batch, TDim.of(channels), size)), [rows], "line")
    missing = simplest_max(image + before - size, TDim.of(0))
    if missing != 0:
        line = node.wire(Pad(_pads(3, 2, TDim.of(0), missing)), [line], "extended")
    line = node.wire(Slice(2, TDim.of(before), image + before), [line], "cut")
    return node.wire(Pad(_pads(3, 2, TDim.of(leading), TDim.of(0))), [line], "silent") if leading else line


def _pads(rank: int, axis: int, before: TDim, after: TDim) -> tuple[tuple[TDim, TDim], ...]:
    """Return the paddings of all axes, of which one is padded."""
    return tuple((before, after) if other == axis else (TDim.of(0), TDim.of(0)) for other in range(rank))
