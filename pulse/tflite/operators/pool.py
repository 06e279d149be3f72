"""Pools of tensors whose last axis has the channels."""

import math

from pulse.graph import OutletId
from pulse.infer.nhwc import channels_first, channels_last, window_pads
from pulse.ops.pool import Pool, PoolKind
from pulse.ops.shape import Transpose
from pulse.support.wording import count_of
from pulse.tflite.codes import activate, clamp, fused_activation, requantize
from pulse.tflite.hybrid import half_away
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.conv import SAME, STRIDES, spatial_option
from pulse.tflite.registry import tflite_op


@tflite_op("MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D")
def pool(node: TfliteNode) -> OutletId:
    """Wire a window over height and width; padding is not counted."""
    kernel = spatial_option(node, "FilterHeight", "FilterWidth")
    strides = spatial_option(node, *STRIDES)
    if node.fact(0).rank != 4:
        raise node.error(f"its input has {count_of(node.fact(0).rank, 'axis', 'axes')}; it takes 4")
    pads = window_pads(node.integer("Padding", SAME) == SAME, tuple(node.fact(0).shape[1:3]), kernel, strides)
    average = node.op_type == "AVERAGE_POOL_2D"
    if node.op_type == "L2_POOL_2D":
        x = node.values(0)
        square = _pool(
            node, node.apply("mul", x, x, suffix="square"), Pool("average", kernel, strides, (1, 1), pads)
        )
        return activate(node, node.apply("sqrt", square, suffix="root"))
    if not node.has_codes:
        kind: PoolKind = "average" if average else "max"
        return activate(node, _pool(node, node.values(0), Pool(kind, kernel, strides, (1, 1), pads)))
    if not average:
        y = _pool(node, requantize(node, 0, "codes"), Pool("max", kernel, strides, (1, 1), pads))
        return clamp(node, y, fused_activation(node))
    padded = any(before != 0 or after != 0 for before, after in pads)
    op = Pool("average" if padded else "sum", kernel, strides, (1, 1), pads)
    y = _pool(node, node.codes(0), op)
    if not padded:
        y = node.apply("div", y, float(math.prod(kernel)), suffix="mean")
    return clamp(node, _round_codes(node, y, int(node.quantization(0).zero[0])), fused_activation(node))


def _pool(node: TfliteNode, x: OutletId, op: Pool) -> OutletId:
    y = node.wire(op, [node.wire(Transpose(channels_first(4)), [x], "channels_first")], "pooled_channels")
    return node.wire(Transpose(channels_last(4)), [y], "pooled")


def _round_codes(node: TfliteNode, x: OutletId, zero: int) -> OutletId:
    """Round to codes, halves away from code 0; return ``code - zero``."""
    code = node.apply("add", x, float(zero), suffix="code")
    return node.apply("sub", half_away(node, code), float(zero), suffix="centred")
