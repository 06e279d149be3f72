"""Ranges, and tensors of one number."""

import numpy as np

from pulse.graph import OutletId
from pulse.onnx.wiring import wire_onnx
from pulse.ops.shape import Expand
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("Fill")
def fill(node: TensorflowNode) -> OutletId:
    """Repeat one number to a shape."""
    return node.wire(Expand(node.dims(0, "dims")), [node.input(1)])


@tensorflow_op("Range")
def range_(node: TensorflowNode) -> OutletId:
    """Wire numbers at even distances; the length may be symbolic."""
    return wire_onnx(node, "Range", node.to_one_type(node.given_inputs()))


@tensorflow_op("LinSpace")
def linspace(node: TensorflowNode) -> OutletId:
    """Wire a number of points between two."""
    start, stop = float(node.scalar(0, "start")), float(node.scalar(1, "stop"))
    count = node.take_elements(node.integer_at(2, "num"), "num")
    return node.constant(np.linspace(start, stop, count).astype(node.fact(0).dtype))
