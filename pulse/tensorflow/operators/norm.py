"""Normalisations."""

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.ops.elementwise import Elementwise
from pulse.ops.norm import Softmax
from pulse.ops.shape import Reshape
from pulse.tensorflow.context import TensorflowNode
from pulse.tensorflow.operators.conv import channels_first
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(node: TensorflowNode) -> OutletId:
    """X * k + (offset - mean * k),  k = scale / sqrt(variance + epsilon)."""
    if node.flag("is_training", True):
        raise node.error("statistics of the batch belong to training; export the model for inference")
    rank = node.fact(0).rank
    epsilon = node.number(node.real("epsilon", 1e-4), np.dtype(node.fact(4).dtype), "epsilon")
    spread = node.wire(Elementwise("add"), [node.input(4), epsilon], "spread")
    deviation = node.wire(Elementwise("sqrt"), [spread], "deviation")
    k = node.wire(Elementwise("div"), [node.input(1), deviation], "scale")
    moved = node.wire(Elementwise("mul"), [node.input(3), k], "moved")
    shift = node.wire(Elementwise("sub"), [node.input(2), moved], "shift")
    if channels_first(node):
        column = (*node.fact(1).shape, *(TDim.of(1),) * (rank - 2))
        k = node.wire(Reshape(column), [k], "scale_column")
        shift = node.wire(Reshape(column), [shift], "shift_column")
    return node.wire(Elementwise("add"), [node.wire(Elementwise("mul"), [node.input(0), k], "scaled"), shift])


@tensorflow_op("Softmax", "LogSoftmax")
def softmax(node: TensorflowNode) -> OutletId:
    """Of the last axis."""
    return node.wire(Softmax(node.fact(0).rank - 1, node.op_type == "LogSoftmax"), [node.input(0)])
