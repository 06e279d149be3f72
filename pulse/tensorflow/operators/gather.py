"""Lookups."""

from pulse.graph import OutletId
from pulse.onnx.wiring import wire_onnx
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("GatherV2", "Gather", "ResourceGather")
def gather(node: TensorflowNode) -> OutletId:
    """Look up entries of an axis."""
    if node.integer("batch_dims", 0):
        raise node.error("other entries for each batch (batch_dims) are not supported")
    axis = node.integer_at(2, "axis") if node.has(2) else 0
    return wire_onnx(node, "Gather", [node.input(0), node.input(1)], axis=axis)


@tensorflow_op("GatherNd", "ResourceGatherNd")
def gather_nd(node: TensorflowNode) -> OutletId:
    """Look up slices."""
    return wire_onnx(node, "GatherND", [node.input(0), node.widen(node.input(1), "places")])
