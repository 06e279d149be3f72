"""Shapes as values, and tensors of a shape."""

import numpy as np

from pulse.graph import OutletId
from pulse.onnx.operators.source import range_ as progression
from pulse.ops.shape import Expand
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.movement import own_rank
from pulse.tflite.registry import tflite_op


@tflite_op("SHAPE")
def shape(node: TfliteNode) -> OutletId:
    """The sizes of a tensor."""
    return node.dims_constant(node.fact(0).shape[: own_rank(node)])


@tflite_op("RANK")
def rank(node: TfliteNode) -> OutletId:
    """The number of axes."""
    return node.constant(np.array(own_rank(node), np.int64))


@tflite_op("FILL")
def fill(node: TfliteNode) -> OutletId:
    """One number, as often as a shape says."""
    dims = node.dims(0, "shape")
    return node.wire(Expand(dims), [node.values(1)]) if dims else node.finished(node.values(1))


@tflite_op("ZEROS_LIKE")
def zeros_like(node: TfliteNode) -> OutletId:
    """Zeros in the shape of a tensor."""
    fact = node.fact(0)
    return node.wire(Expand(fact.shape), [node.constant(np.zeros((), fact.dtype), "zero")])


@tflite_op("RANGE")
def range_(node: TfliteNode) -> OutletId:
    """Numbers at even distances; the length may be symbolic."""
    return progression(node)
