"""Running sums and products."""

from pulse.graph import OutletId
from pulse.onnx.wiring import wire_onnx
from pulse.ops.cumulative import CumSum
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("Cumsum")
def cum_sum(node: TensorflowNode) -> OutletId:
    """Wire running sums along an axis."""
    axis = node.axis(node.integer_at(1, "axis"), node.fact(0).rank)
    return node.wire(CumSum(axis, node.flag("exclusive"), node.flag("reverse")), [node.input(0)])


@tensorflow_op("Cumprod")
def cumprod(node: TensorflowNode) -> OutletId:
    """Wire running products along an axis."""
    exclusive, reverse = int(node.flag("exclusive")), int(node.flag("reverse"))
    return wire_onnx(node, "CumProd", [node.input(0), node.input(1)], exclusive=exclusive, reverse=reverse)
