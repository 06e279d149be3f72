"""Running sums and products."""

from pulse.graph import OutletId
from pulse.infer.inference_node import same_type_and_shape
from pulse.onnx.wiring import wire_onnx
from pulse.ops.cumulative import CumSum
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import rule, tensorflow_op


@tensorflow_op("Cumsum")
def cum_sum(node: TensorflowNode) -> OutletId:
    """Wire running sums along an axis."""
    axis = node.axis(node.integer_at(1, "axis"), node.fact(0).rank)
    return node.wire(CumSum(axis, node.flag("exclusive"), node.flag("reverse")), [node.input(0)])


rule("Cumsum")(same_type_and_shape)


@tensorflow_op("Cumprod")
def cumprod(node: TensorflowNode) -> OutletId:
    """Wire running products along an axis."""
    exclusive, reverse = int(node.flag("exclusive")), int(node.flag("reverse"))
    return wire_onnx(node, "CumProd", [node.input(0), node.input(1)], exclusive=exclusive, reverse=reverse)
