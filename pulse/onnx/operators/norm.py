"""Normalisations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.onnx.tensors import onnx_dtype
from pulse.ops.elementwise import Elementwise
from pulse.ops.norm import LayerNorm, Softmax
from pulse.ops.reduce import Reduce
from pulse.ops.shape import Reshape, exact_quotient, volume


@onnx_op("Softmax", "LogSoftmax")
def softmax(node: NodeContext) -> OutletId:
    """One axis from opset 13 on; before, all axes from ``axis`` on together."""
    shape = node.fact(0).shape
    rank, log = len(shape), node.op_type == "LogSoftmax"
    if node.opset >= 13:
        return node.wire(Softmax(node.axis(node.integer("axis", -1), rank), log), [node.input(0)])
    first = node.axis(node.integer("axis", 1), rank)
    if first == rank - 1:
        return node.wire(Softmax(first, log), [node.input(0)])
    flat = Reshape((*shape[:first], volume(shape[first:])))
    y = node.wire(Softmax(first, log), [node.wire(flat, [node.input(0)], "flat")], "flat_softmax")
    return node.wire(Reshape(shape), [y])


@onnx_op("LayerNormalization")
def layer_norm(node: NodeContext) -> list[OutletId]:
    """The normalised tensor and, where they are asked for, the mean and the reciprocal of the deviation."""
    axis = node.axis(node.integer("axis", -1), node.fact(0).rank)
    epsilon = node.real("epsilon", 1e-5)
    y = node.wire(LayerNorm(axis, epsilon), node.given())
    return [y, *_statistics(node, axis, epsilon)] if any(node.outputs[1:]) else [y]


def _statistics(node: NodeContext, axis: int, epsilon: float) -> list[OutletId]:
    """Mean and 1 / sqrt(variance + epsilon) of all axes from ``axis`` on, in the type of the attribute stash_type."""
    dtype = onnx_dtype(node.integer("stash_type", 1), f"{node.wire_name} (LayerNormalization)")
    found = moments(node, node.cast(node.input(0), dtype, "precise"), range(axis, node.fact(0).rank))
    little = node.scalar_constant(epsilon, node.graph.fact(found.variance), "epsilon")
    spread = node.wire(Elementwise("add"), [found.variance, little], "spread")
    deviation = node.wire(Elementwise("sqrt"), [spread], "deviation")
    return [found.mean, node.wire(Elementwise("reciprocal"), [deviation], "inverse")]


@dataclass(frozen=True)
class Moments:
    """Statistics of a tensor: its mean, the tensor without it, and the variance."""

    mean: OutletId
    centred: OutletId
    variance: OutletId


def moments(node: NodeContext, x: OutletId, axes: Sequence[int]) -> Moments:
    """Statistics over some axes, which stay as 1."""
    reduce = Reduce("mean", tuple(axes), True)
    mean = node.wire(reduce, [x], "mean")
    centred = node.wire(Elementwise("sub"), [x, mean], "centred")
    square = node.wire(Elementwise("mul"), [centred, centred], "square")
    return Moments(mean, centred, node.wire(reduce, [square], "variance"))


def _centred_rows(node: NodeContext, x: OutletId, axis: int, epsilon: float) -> OutletId:
    """Every axis from ``axis`` on to mean 0 and variance 1."""
    one = node.constant(np.ones((), dtype=node.graph.fact(x).dtype), "one")
    return node.wire(LayerNorm(axis, epsilon), [x, one], "normalised")


def _scaled(
    node: NodeContext, x: OutletId, axis: int, slots: Sequence[int] = (1, 2), suffix: str = ""
) -> OutletId:
    """Scale and bias, each [C], along an axis."""
    rank = node.graph.fact(x).rank
    operands = [node.input(slot) for slot in slots]
    for place, (slot, kind) in enumerate(zip(slots, ("mul", "add"))):
        fact = node.fact(slot)
        if fact.rank != 1:
            raise node.error(f"its scale and bias must be [C], got {fact}")
        column = (*fact.shape, *(TDim.of(1),) * (rank - 1 - axis))
        part = node.wire(Reshape(column), [operands[place]], f"{kind}_column")
        x = node.wire(Elementwise(kind), [x, part], suffix if kind == "add" else f"{kind}_scaled")
    return x


@onnx_op("InstanceNormalization")
def instance_norm(node: NodeContext) -> OutletId:
    """Statistics of each channel of each example; scale and bias for each channel."""
    if node.fact(0).rank < 3:
        raise node.error(f"{node.fact(0)} must be [N, C, X...]")
    return _scaled(node, _centred_rows(node, node.input(0), 2, node.real("epsilon", 1e-5)), 1)


@onnx_op("GroupNormalization")
def group_norm(node: NodeContext) -> OutletId:
    """Statistics of groups of channels; scale and bias for each group before opset 21, then for each channel."""
    shape = node.fact(0).shape
    if len(shape) < 3:
        raise node.error(f"{node.fact(0)} must be [N, C, X...]")
    groups = node.divisor("num_groups", node.fact(0).shape[1], "channels of its input")
    inner = exact_quotient([shape[1]], [TDim.of(groups)], f"{node.wire_name} (GroupNormalization)")
    split = (shape[0], TDim.of(groups), inner, *shape[2:])
    x = node.wire(Reshape(split), [node.input(0)], "groups")
    x = _centred_rows(node, x, 2, node.real("epsilon", 1e-5))
    if node.opset < 21:
        return node.wire(Reshape(shape), [_scaled(node, x, 1, suffix="shifted")])
    return _scaled(node, node.wire(Reshape(shape), [x], "channels"), 1)


@onnx_op("LpNormalization")
def lp_norm(node: NodeContext) -> OutletId:
    """Divided by the sum of magnitudes or the length of an axis; zeros stay zeros."""
    x = node.input(0)
    p = node.integer("p", 2)
    if p not in (1, 2):
        raise node.error(f"p {p} is not covered; 1 and 2 are")
    axis = node.axis(node.integer("axis", -1), node.fact(0).rank)
    norm = node.wire(Reduce("l1" if p == 1 else "l2", (axis,), True), [x], "norm")
    zero, one = (
        node.scalar_constant(number, node.fact(0), name) for number, name in ((0, "zero"), (1, "one"))
    )
    empty = node.wire(Elementwise("equal"), [norm, zero], "empty")
    return node.wire(Elementwise("div"), [x, node.wire(Elementwise("where"), [empty, one, norm], "divisor")])


@onnx_op("MeanVarianceNormalization")
def mean_variance_norm(node: NodeContext) -> OutletId:
    """To mean 0 and standard deviation 1 over some axes; all but the channels by default."""
    x = node.input(0)
    axes = node.axes(node.integer_list("axes", (0, 2, 3)), node.fact(0).rank)
    found = moments(node, x, axes)
    deviation = node.wire(Elementwise("sqrt"), [found.variance], "deviation")
    little = node.scalar_constant(1e-9, node.fact(0), "epsilon")
    return node.wire(
        Elementwise("div"), [found.centred, node.wire(Elementwise("add"), [deviation, little], "divisor")]
    )


@onnx_op("RMSNormalization")
def rms_norm(node: NodeContext) -> OutletId:
    """Divided by the root of the mean square of all axes from ``axis`` on, times a scale."""
    x = node.input(0)
    rank = node.fact(0).rank
    axis = node.axis(node.integer("axis", -1), rank)
    square = node.wire(Elementwise("mul"), [x, x], "square")
    mean = node.wire(Reduce("mean", tuple(range(axis, rank)), True), [square], "mean_square")
    little = node.scalar_constant(node.real("epsilon", 1e-5), node.fact(0), "epsilon")
    root = node.wire(Elementwise("sqrt"), [node.wire(Elementwise("add"), [mean, little], "spread")], "root")
    return node.wire(
        Elementwise("mul"), [node.wire(Elementwise("div"), [x, root], "normalised"), node.input(1)]
    )
