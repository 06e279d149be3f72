"""Reductions, argmin and argmax."""

from collections.abc import Iterator
from typing import Literal

from pulse.facts import I64
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, HasRank, HasType, RankSum, SameRank, SameType
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.reduce import ArgReduce, Reduce, ReduceKind

REDUCE_KINDS: dict[str, ReduceKind] = {
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


@onnx_op(*REDUCE_KINDS)
def reduce(node: NodeContext) -> OutletId:
    """Reduce axes: an attribute before opset 18 (13 for a sum), then an input; none means all."""
    rank = node.fact(0).rank
    since = 13 if node.op_type == "ReduceSum" else 18
    if node.opset < since:
        axes = node.integer_list("axes", ())
    else:
        axes = tuple(node.integers(1, "axes")) if node.has(1) else ()
    if not axes and not node.flag("noop_with_empty_axes"):
        axes = tuple(range(rank))
    kind = REDUCE_KINDS[node.op_type]
    if not axes and kind in ("sum", "mean", "max", "min", "prod"):
        return node.input(0)
    return node.wire(Reduce(kind, node.axes(axes, rank), node.flag("keepdims", True)), [node.input(0)])


@onnx_op(*EXTREMES)
def arg_reduce(node: NodeContext) -> OutletId:
    """Wire the index of the largest or smallest entry."""
    axis = node.axis(node.integer("axis", 0), node.fact(0).rank)
    op = ArgReduce(EXTREMES[node.op_type], axis, node.flag("keepdims", True), node.flag("select_last_index"))
    return node.wire(op, [node.input(0)])


@rule(*REDUCE_KINDS, uniform=True)
def infer_reduction(node: InferenceNode) -> Iterator[FactRelation]:
    """The listed axes are removed, or have size 1; the translator computes the other sizes."""
    x, y = node.input(0), node.output
    yield SameType([x, y])
    if node.flag("keepdims", True):
        yield SameRank([x, y])
        return
    axes = node.find_axes(since=13 if node.op_type == "ReduceSum" else 18)
    if axes is None:
        axis_count = node.count(1)
        if axis_count:
            yield RankSum(x, [y], axis_count)
    elif axes:
        yield RankSum(x, [y], len(axes))
    else:
        yield SameRank([x, y]) if node.flag("noop_with_empty_axes") else HasRank([y], 0)


@rule(*EXTREMES, uniform=True)
def infer_extreme(node: InferenceNode) -> Iterator[FactRelation]:
    """One axis is gone, or of size 1."""
    x, y = node.input(0), node.output
    yield HasType([y], I64)
    yield RankSum(x, [y], 0 if node.flag("keepdims", True) else 1)


ONNX_NAMES = {kind: op_type for op_type, kind in REDUCE_KINDS.items()}


@writes(Reduce)
def write_reduce(w: NodeWriter, op: Reduce) -> str:
    """Write the operator of that kind; a reduction of no axes is one over a new axis of size 1."""
    (x,) = w.inputs
    if op.axes:
        return w.reduce(ONNX_NAMES[op.kind], x, op.axes, keepdims=op.keepdims)
    return w.reduce(ONNX_NAMES[op.kind], w.add_axis(x, 0, "wide"), (0,), keepdims=False)


@writes(ArgReduce)
def write_arg_reduce(w: NodeWriter, op: ArgReduce) -> str:
    """Write the index of an extreme: of equal entries the first, or the last."""
    return w.emit(
        "ArgMax" if op.kind == "max" else "ArgMin",
        w.inputs,
        axis=op.axis,
        keepdims=int(op.keepdims),
        select_last_index=int(op.select_last),
    )
