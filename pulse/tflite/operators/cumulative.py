"""Running sums."""

from pulse.graph import OutletId
from pulse.ops.cumulative import CumSum
from pulse.tflite.node import TfliteNode
from pulse.tflite.registry import tflite_op


@tflite_op("CUMSUM")
def cum_sum(node: TfliteNode) -> OutletId:
    """Wire running sums of an axis."""
    axis = node.axis(node.integer_at(1, "axis"), node.fact(0).rank)
    op = CumSum(axis, node.flag("Exclusive"), node.flag("Reverse"))
    return node.wire(op, [node.values(0)])
