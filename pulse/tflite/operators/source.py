"""Constants and ranges."""

import numpy as np

from pulse.graph import OutletId
from pulse.onnx.wiring import wire_onnx
from pulse.ops.shape import Expand
from pulse.tflite.node import TfliteNode
from pulse.tflite.registry import tflite_op


@tflite_op("FILL")
def fill(node: TfliteNode) -> OutletId:
    """Repeat one number to a shape."""
    dims = node.dims(0, "shape")
    return node.wire(Expand(dims), [node.values(1)]) if dims else node.name_result(node.values(1))


@tflite_op("ZEROS_LIKE")
def zeros_like(node: TfliteNode) -> OutletId:
    """Wire zeros in the shape of a tensor."""
    fact = node.fact(0)
    return node.wire(Expand(fact.shape), [node.constant(np.zeros((), fact.dtype), "zero")])


@tflite_op("RANGE")
def range_(node: TfliteNode) -> OutletId:
    """Wire numbers at even distances; the length may be symbolic."""
    return wire_onnx(node, "Range", node.given_inputs())
