"""Normalisations: the shape stays, and the parameters have the channels."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from pulse.dim import TDim
from pulse.facts import volume
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode, same_type_and_shape
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, HasRank, SameSize
from pulse.infer.wire_facts import Axis
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.tensors import onnx_dtype
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.conv import NO_PAD
from pulse.ops.norm import LayerNorm, Softmax
from pulse.ops.pad import Pad
from pulse.ops.reduce import Reduce
from pulse.ops.shape import Reshape, exact_quotient
from pulse.ops.slice import Slice
from pulse.support.budget import current_spending
from pulse.support.record import record
from pulse.support.wording import count_of


@onnx_op("Softmax", "LogSoftmax")
def softmax(node: NodeContext) -> OutletId:
    """Wire softmax along one axis from opset 13 on; before, along all axes from ``axis`` on together."""
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
    """Normalise; also return the mean and the reciprocal of the deviation if the node has these outputs."""
    axis = node.axis(node.integer("axis", -1), node.fact(0).rank)
    epsilon = node.real("epsilon", 1e-5)
    y = node.wire(LayerNorm(axis, epsilon), node.given_inputs())
    return [y, *_statistics(node, axis, epsilon)] if any(node.outputs[1:]) else [y]


def _statistics(node: NodeContext, axis: int, epsilon: float) -> list[OutletId]:
    """Return mean and 1 / sqrt(variance + epsilon) of all axes from ``axis`` on, in the type of stash_type."""
    dtype = onnx_dtype(node.integer("stash_type", 1), f"{node.wire_name} (LayerNormalization)")
    statistics = moments(node, node.cast(node.input(0), dtype, "precise"), range(axis, node.fact(0).rank))
    spread = node.apply("add", statistics.variance, epsilon, suffix="spread")
    deviation = node.apply("sqrt", spread, suffix="deviation")
    return [statistics.mean, node.apply("reciprocal", deviation, suffix="inverse")]


@record
class Moments:
    """Statistics of a tensor: its mean, the tensor without it, and the variance."""

    mean: OutletId
    centred: OutletId
    variance: OutletId


def moments(node: NodeContext, x: OutletId, axes: Sequence[int]) -> Moments:
    """Return statistics over some axes, which keep size 1."""
    reduce = Reduce("mean", tuple(axes), True)
    mean = node.wire(reduce, [x], "mean")
    centred = node.apply("sub", x, mean, suffix="centred")
    square = node.apply("mul", centred, centred, suffix="square")
    return Moments(mean, centred, node.wire(reduce, [square], "variance"))


def _normalise_rows(node: NodeContext, x: OutletId) -> OutletId:
    """Normalise the axes from the third on to mean 0 and variance 1."""
    one = node.constant(np.ones((), dtype=node.graph.fact(x).dtype), "one")
    return node.wire(LayerNorm(2, node.real("epsilon", 1e-5)), [x, one], "normalised")


def _scale(node: NodeContext, x: OutletId, suffix: str = "") -> OutletId:
    """Multiply by the scale and add the bias, each [C], along the second axis."""
    rank = node.graph.fact(x).rank
    operands = {slot: node.input(slot) for slot in (1, 2)}
    for slot, function in ((1, "mul"), (2, "add")):
        fact = node.fact(slot)
        node.require(fact.rank == 1, f"its scale and bias must be [C], got {fact}")
        column = (*fact.shape, *(TDim.of(1),) * (rank - 2))
        part = node.wire(Reshape(column), [operands[slot]], f"{function}_column")
        x = node.apply(function, x, part, suffix=suffix if function == "add" else f"{function}_scaled")
    return x


@onnx_op("InstanceNormalization")
def instance_norm(node: NodeContext) -> OutletId:
    """Normalise each channel of each example; scale and bias for each channel."""
    node.require(node.fact(0).rank >= 3, f"{node.fact(0)} must be [N, C, X...]")
    return _scale(node, _normalise_rows(node, node.input(0)))


@onnx_op("GroupNormalization")
def group_norm(node: NodeContext) -> OutletId:
    """Normalise groups of channels; scale and bias for each group before opset 21, then for each channel."""
    shape = node.fact(0).shape
    node.require(len(shape) >= 3, f"{node.fact(0)} must be [N, C, X...]")
    groups = node.divisor("num_groups", node.fact(0).shape[1], "channels of its input")
    group_size = exact_quotient([shape[1]], [TDim.of(groups)], f"{node.wire_name} (GroupNormalization)")
    split = (shape[0], TDim.of(groups), group_size, *shape[2:])
    x = node.wire(Reshape(split), [node.input(0)], "groups")
    x = _normalise_rows(node, x)
    if node.opset < 21:
        return node.wire(Reshape(shape), [_scale(node, x, "shifted")])
    return _scale(node, node.wire(Reshape(shape), [x], "channels"))


@onnx_op("LpNormalization")
def lp_norm(node: NodeContext) -> OutletId:
    """Wire Lp normalisation along an axis; all-zero vectors stay zero."""
    x = node.input(0)
    p = node.integer("p", 2)
    node.require(p in (1, 2), f"p {p} is not supported; use 1 or 2")
    axis = node.axis(node.integer("axis", -1), node.fact(0).rank)
    norm = node.wire(Reduce("l1" if p == 1 else "l2", (axis,), True), [x], "norm")
    empty = node.apply("equal", norm, 0, suffix="empty")
    return node.apply("div", x, node.apply("where", empty, 1, norm, suffix="divisor"))


@onnx_op("MeanVarianceNormalization")
def mean_variance_norm(node: NodeContext) -> OutletId:
    """Normalise to mean 0 and standard deviation 1 over some axes, by default all but the channels."""
    x = node.input(0)
    axes = node.axes(node.integer_list("axes", (0, 2, 3)), node.fact(0).rank)
    statistics = moments(node, x, axes)
    deviation = node.apply("sqrt", statistics.variance, suffix="deviation")
    return node.apply("div", statistics.centred, node.apply("add", deviation, 1e-9, suffix="divisor"))


@onnx_op("RMSNormalization", "SimplifiedLayerNormalization")
def rms_norm(node: NodeContext) -> OutletId:
    """Divide by the root of the mean square of all axes from ``axis`` on, times a scale."""
    node.require(not any(node.outputs[1:]), "the inverse deviation is not supported; it is only for training")
    rank = node.fact(0).rank
    axes = tuple(range(node.axis(node.integer("axis", -1), rank), rank))
    return _rms_norm(node, node.input(0), axes, node.input(1))


def _rms_norm(node: NodeContext, x: OutletId, axes: tuple[int, ...], scale: OutletId) -> OutletId:
    square = node.apply("mul", x, x, suffix="square")
    mean = node.wire(Reduce("mean", axes, True), [square], "mean_square")
    spread = node.apply("add", mean, node.real("epsilon", 1e-5), suffix="spread")
    root = node.apply("sqrt", spread, suffix="root")
    return node.apply("mul", node.apply("div", x, root, suffix="normalised"), scale)


@onnx_op("LRN")
def lrn(node: NodeContext) -> OutletId:
    """Wire ``x / (bias + alpha / size * s) ** beta``; s is the sum of the squares of neighbouring channels."""
    x, fact = node.input(0), node.fact(0)
    size = node.integer("size")
    if fact.rank < 2 or size < 1:
        raise node.error(f"a neighbourhood of {count_of(size, 'channel')} does not fit {fact}")
    current_spending().take_nodes(size, f"{node.wire_name} (LRN), size {size}")
    before = (size - 1) // 2
    edges = (NO_PAD, (TDim.of(before), TDim.of(size - 1 - before)), *(NO_PAD,) * (fact.rank - 2))
    padded = node.wire(Pad(edges), [node.apply("mul", x, x, suffix="squares")], "padded")
    parts = [
        node.wire(Slice(1, TDim.of(first), fact.shape[1] + first), [padded], f"neighbour{first}")
        for first in range(size)
    ]
    total = node.apply("sum", *parts, suffix="sums")
    penalty = node.apply("mul", total, node.real("alpha", 1e-4) / size, suffix="scaled")
    biased = node.apply("add", penalty, node.real("bias", 1.0), suffix="biased")
    return node.apply("div", x, node.apply("pow", biased, node.real("beta", 0.75), suffix="power"))


@onnx_op("com.microsoft::SkipLayerNormalization")
def skip_layer_normalization(node: NodeContext) -> Sequence[OutletId]:
    """Add two tensors and a bias, and normalise over the last axis; the sum is the fourth output."""
    total = _skip_sum(node, 4)
    operands = [total, node.input(2)]
    shift = node.input(3) if node.has(3) else None
    epsilon = node.real("epsilon", 1e-12)
    axis = node.graph.fact(total).rank - 1
    y = node.wire(LayerNorm(axis, epsilon), operands if shift is None else [*operands, shift])
    return _with_sum(node, y, total)


@onnx_op("com.microsoft::SkipSimplifiedLayerNormalization")
def skip_rms_norm(node: NodeContext) -> Sequence[OutletId]:
    """Add two tensors and a bias, and divide by the root of the mean square of the last axis, times a scale."""
    total = _skip_sum(node, 3)
    y = _rms_norm(node, total, (node.graph.fact(total).rank - 1,), node.input(2))
    return _with_sum(node, y, total)


def _skip_sum(node: NodeContext, bias_slot: int) -> OutletId:
    """Return the sum of the first two inputs, and of the bias at a slot if the node has one."""
    total = node.apply("add", node.input(0), node.input(1), suffix="sum")
    return node.apply("add", total, node.input(bias_slot), suffix="biased") if node.has(bias_slot) else total


def _with_sum(node: NodeContext, y: OutletId, total: OutletId) -> Sequence[OutletId]:
    """Return the outputs: the result, and the sum as the fourth one."""
    if len(node.outputs) < 4 or not node.outputs[3]:
        return [y]
    if any(node.outputs[1:3]):
        raise node.error("mean and deviation are not supported; they are only for training")
    return [y, y, y, node.with_name(node.outputs[3]).name_result(total)]


@rule("BatchNormalization", "InstanceNormalization")
def infer_channelwise(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the shapes of x [N, C, X...] and parameters [C] each."""
    yield from same_type_and_shape(node)
    yield from _channels(node)


@rule("GroupNormalization")
def infer_group_norm(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the shapes of x [N, C, X...] and parameters: [C] from opset 21 on, one for each group before."""
    yield from same_type_and_shape(node)
    if node.opset >= 21:
        yield from _channels(node)


def _channels(node: InferenceNode) -> Iterator[FactRelation]:
    parameters = node.given_inputs()[1:]
    yield HasRank(parameters, 1)
    yield SameSize([Axis(node.input(0), 1), *(Axis(parameter, 0) for parameter in parameters)])


@rule("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def infer_layer(node: InferenceNode) -> Iterator[FactRelation]:
    """The shape stays; a scale of one axis is as long as the last one of x, if it is not of size 1."""
    yield from same_type_and_shape(node)
    scale = node.input(1)
    size = node.fact(scale).dim(0)
    if node.rank(scale) == 1 and size is not None and size != 1:
        yield SameSize([Axis(node.input(0), -1), Axis(scale, 0)])


rule("Softmax", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "LRN")(same_type_and_shape)
writes(Softmax)(lambda w, op: w.emit("LogSoftmax" if op.log else "Softmax", w.inputs, axis=op.axis))


@writes(LayerNorm)
def write_layer_norm(w: NodeWriter, op: LayerNorm) -> str:
    """Write the operator from opset 17 on; scale and bias have the normalised shape, as runtimes require."""
    x = w.inputs[0]
    rank = len(w.input_facts[0].shape)
    inner = tuple(w.size(axis) for axis in range(op.axis, rank))
    extra = [_spread(w, slot, inner) for slot in range(1, len(w.inputs))]
    if w.opset >= 17:
        return w.emit("LayerNormalization", [x, *extra], axis=op.axis, epsilon=op.epsilon)
    axes = range(op.axis, rank)
    centred = w.emit("Sub", [x, w.reduce("ReduceMean", x, axes, "mean")], "centred")
    square = w.emit("Mul", [centred, centred], "square")
    variance = w.reduce("ReduceMean", square, axes, "variance")
    sure = w.emit("Add", [variance, w.number(op.epsilon, w.dtype(), "epsilon")], "sure")
    unit = w.emit("Div", [centred, w.emit("Sqrt", [sure], "deviation")], "unit")
    scaled = w.emit("Mul", [unit, extra[0]], "scaled" if extra[1:] else "")
    return w.emit("Add", [scaled, extra[1]]) if extra[1:] else scaled


def _spread(w: NodeWriter, slot: int, inner: tuple[int, ...]) -> str:
    """Return a scale or bias in the shape of the normalised axes."""
    sizes, value = w.sizes(slot), w.known_value(slot)
    if sizes == inner:
        return w.inputs[slot]
    narrow = sizes[max(0, len(sizes) - len(inner)) :]
    if math.prod(narrow) != math.prod(sizes):
        raise w.error(
            f"a scale or bias of shape {list(sizes)} reaches beyond the normalised axes {list(inner)}"
        )
    if value is not None:
        return w.constant(np.broadcast_to(value.reshape(narrow), inner), f"wide{slot}")
    flat = w.inputs[slot] if narrow == sizes else w.reshape(w.inputs[slot], narrow, f"flat{slot}")
    return w.emit("Expand", [flat, w.integers(inner, "inner")], f"wide{slot}")
