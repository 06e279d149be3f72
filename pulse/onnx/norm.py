"""Normalisations."""

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.ops.elementwise import Elementwise
from pulse.ops.norm import LayerNorm, Softmax
from pulse.ops.shape import Reshape, volume


@onnx_op("Softmax", "LogSoftmax")
def softmax(node: NodeContext) -> OutletId:
    """One axis from opset 13 on; before, all axes from ``axis`` on together."""
    shape = node.fact(0).shape
    rank, log = len(shape), node.op_type == "LogSoftmax"
    if node.opset >= 13:
        return node.wire(Softmax(node.axis(node.integer("axis", -1), rank), log), [node.input(0)])
    first = node.axis(node.integer("axis", 1), rank)
    if first == rank - 1:
        return node.wire(Softmax(first, log), [node.input(0)])
    flat = Reshape((*shape[:first], volume(shape[first:])))
    y = node.wire(Softmax(first, log), [node.wire(flat, [node.input(0)], "flat")], "flat_softmax")
    return node.wire(Reshape(shape), [y])


@onnx_op("LayerNormalization")
def layer_norm(node: NodeContext) -> OutletId:
    """The normalised tensor only."""
    axis = node.axis(node.integer("axis", -1), node.fact(0).rank)
    return node.wire(LayerNorm(axis, node.real("epsilon", 1e-5)), node.given())


@onnx_op("BatchNormalization")
def batch_norm(node: NodeContext) -> OutletId:
    """With given statistics it is a multiplication and an addition: x * k + (bias - mean * k)."""
    if node.flag("training_mode") or (node.opset < 9 and not node.flag("spatial", True)):
        raise node.error("only inference with statistics for each channel is covered")
    scale, bias, mean, variance = (node.input(slot) for slot in range(1, 5))
    like = node.fact(4)
    epsilon = node.constant(np.array(node.real("epsilon", 1e-5), dtype=like.dtype), "epsilon")
    spread = node.wire(Elementwise("add"), [variance, epsilon], "spread")
    deviation = node.wire(Elementwise("sqrt"), [spread], "deviation")
    k = node.wire(Elementwise("div"), [scale, deviation], "scale")
    moved = node.wire(Elementwise("mul"), [mean, k], "moved")
    shift = node.wire(Elementwise("sub"), [bias, moved], "shift")
    channels = node.fact(1).shape
    column = (*channels, *(TDim.of(1),) * max(0, node.fact(0).rank - 2))
    k = node.wire(Reshape(column), [k], "scale_column")
    shift = node.wire(Reshape(column), [shift], "shift_column")
    return node.wire(Elementwise("add"), [node.wire(Elementwise("mul"), [node.input(0), k], "scaled"), shift])
