"""Reductions, and argmin and argmax."""

from typing import Literal

import numpy as np

from pulse.facts import BOOL, I32, I64
from pulse.graph import OutletId
from pulse.ops.elementwise import Cast
from pulse.ops.reduce import SELF_OF_ONE, ArgReduce, Reduce, ReduceKind, reduced_shape
from pulse.ops.shape import Reshape
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op

REDUCE_KINDS: dict[str, ReduceKind] = {
    "Sum": "sum",
    "Mean": "mean",
    "Max": "max",
    "Min": "min",
    "Prod": "prod",
    "EuclideanNorm": "l2",
}

LOGIC: dict[str, ReduceKind] = {"All": "min", "Any": "max"}

EXTREMES: dict[str, Literal["max", "min"]] = {"ArgMax": "max", "ArgMin": "min"}


def _axes(node: TensorflowNode) -> tuple[int, ...]:
    return node.axes(node.integers(1, "axes"), node.fact(0).rank)


@tensorflow_op(*REDUCE_KINDS)
def reduce(node: TensorflowNode) -> OutletId:
    """Reduce the axes of an input; no axes change nothing."""
    axes, kind, keeps = _axes(node), REDUCE_KINDS[node.op_type], node.flag("keep_dims")
    if not axes:
        return node.input(0)
    shape = node.fact(0).shape
    # a reshape, so that a size remains one
    if kind in SELF_OF_ONE and not keeps and all(shape[axis] == 1 for axis in axes):
        return node.wire(Reshape(reduced_shape(shape, axes, False)), [node.input(0)])
    return node.wire(Reduce(kind, axes, keeps), [node.input(0)])


@tensorflow_op("L2Loss")
def l2_loss(node: TensorflowNode) -> OutletId:
    """Wire half of the sum of all squares."""
    square = node.apply("mul", node.input(0), node.input(0), suffix="square")
    total = node.wire(Reduce("sum", tuple(range(node.fact(0).rank)), False), [square], "sum")
    return node.apply("mul", total, 0.5)


@tensorflow_op(*LOGIC)
def reduce_logical(node: TensorflowNode) -> OutletId:
    """Whether all, or any, are true."""
    axes = _axes(node)
    if not axes:
        return node.input(0)
    numbers = node.wire(Cast(I32), [node.input(0)], "numbers")
    result = node.wire(Reduce(LOGIC[node.op_type], axes, node.flag("keep_dims")), [numbers], "reduced")
    return node.wire(Cast(BOOL), [result])


@tensorflow_op(*EXTREMES)
def arg_reduce(node: TensorflowNode) -> OutletId:
    """Wire the first index of the largest or smallest entry of an axis."""
    axis = node.axis(node.integer_at(1, "axis"), node.fact(0).rank)
    dtype = node.require_dtype("output_type") if "output_type" in node.attributes else I64
    op = ArgReduce(EXTREMES[node.op_type], axis, False, False)
    if dtype == np.int64:
        return node.wire(op, [node.input(0)])
    return node.wire(Cast(dtype), [node.wire(op, [node.input(0)], "index")])
