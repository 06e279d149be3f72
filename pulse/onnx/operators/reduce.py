"""Reductions, and the place of an extreme."""

from typing import Literal

from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.ops.reduce import ArgReduce, Reduce, ReduceKind

KINDS: dict[str, ReduceKind] = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceProd": "prod",
    "ReduceL1": "l1",
    "ReduceL2": "l2",
    "ReduceSumSquare": "sum_square",
    "ReduceLogSum": "log_sum",
    "ReduceLogSumExp": "log_sum_exp",
}
EXTREMES: dict[str, Literal["max", "min"]] = {"ArgMax": "max", "ArgMin": "min"}


@onnx_op(*KINDS)
def reduce(node: NodeContext) -> OutletId:
    """Axes are an attribute before opset 18 (13 for a sum), then an input; none means all."""
    rank = node.fact(0).rank
    since = 13 if node.op_type == "ReduceSum" else 18
    if node.opset < since:
        listed = node.integer_list("axes", ())
    else:
        listed = tuple(node.integers(1, "axes")) if node.has(1) else ()
    if not listed and not node.flag("noop_with_empty_axes"):
        listed = tuple(range(rank))
    kind = KINDS[node.op_type]
    if not listed and kind in ("sum", "mean", "max", "min", "prod"):
        return node.input(0)
    return node.wire(Reduce(kind, node.axes(listed, rank), node.flag("keepdims", True)), [node.input(0)])


@onnx_op(*EXTREMES)
def arg_reduce(node: NodeContext) -> OutletId:
    """The index of the largest or smallest entry."""
    axis = node.axis(node.integer("axis", 0), node.fact(0).rank)
    op = ArgReduce(EXTREMES[node.op_type], axis, node.flag("keepdims", True), node.flag("select_last_index"))
    return node.wire(op, [node.input(0)])
