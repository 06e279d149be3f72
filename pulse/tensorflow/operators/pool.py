"""Pools over windows."""

from pulse.graph import OutletId
from pulse.onnx.wiring import wire_onnx
from pulse.tensorflow.data_format import from_second, read_pads, spatial_attribute, to_second
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op

ONNX_NAMES = {"MaxPool": "MaxPool", "AvgPool": "AveragePool"}


@tensorflow_op(*ONNX_NAMES)
def pool(node: TensorflowNode) -> OutletId:
    """Wire the largest entry or the mean of each window; padding does not count."""
    rank = node.fact(0).rank
    node.require(rank == 4, f"it needs an image of 4 axes, got {node.fact(0)}")
    kernel, strides = spatial_attribute(node, "ksize", rank), spatial_attribute(node, "strides", rank)
    x = to_second(node, node.input(0))
    y = wire_onnx(
        node,
        ONNX_NAMES[node.op_type],
        [x],
        "pooled",
        kernel_shape=kernel,
        strides=strides,
        **read_pads(node, rank),
    )
    return from_second(node, y)
