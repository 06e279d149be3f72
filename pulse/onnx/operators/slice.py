"""Slices, splits and reversals. The translators compute the extent of a slice."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from pulse.dim import TDim, ceil_div, dim_min
from pulse.facts import I64
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode, same_type_and_rank
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, SameRank, SameSize, SameType, SizeMultiple, SizeSum
from pulse.infer.slices import slice_op, split_parts
from pulse.infer.wire_facts import Axis
from pulse.onnx.operators.source import steps
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.dims import simplest_min, unify
from pulse.ops.elementwise_within import RangeCheck
from pulse.ops.gather_elements import GatherBatches
from pulse.ops.shape import AddAxis, Transpose
from pulse.ops.slice import Decimate, Slice
from pulse.ops.slice_frames import Frames
from pulse.support.wording import count_of


@onnx_op("Slice")
def slice_(node: NodeContext) -> OutletId:
    """Slice: by attributes before opset 10, then by inputs, which may depend on lengths."""
    rank = node.fact(0).rank
    if node.opset < 10:
        starts: Sequence[TDim] = [TDim.of(bound) for bound in node.integer_list("starts")]
        ends: Sequence[TDim] = [TDim.of(bound) for bound in node.integer_list("ends")]
        axes: Sequence[int] = node.integer_list("axes", range(len(starts)))
        steps: Sequence[int] = [1] * len(starts)
    else:
        starts, ends = node.dims(1, "start"), node.dims(2, "end")
        axes = node.integers(3, "axes") if node.has(3) else range(len(starts))
        steps = node.integers(4, "steps") if node.has(4) else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise node.error(
            f"{len(starts)} starts, {len(ends)} ends, {count_of(len(axes), 'axis', 'axes')} and "
            f"{count_of(len(steps), 'step')}"
        )
    x, shape = node.input(0), node.fact(0).shape
    for axis, start, end, step in zip((node.axis(axis, rank) for axis in axes), starts, ends, steps):
        op = slice_op(node, axis, shape[axis], start, end, step)
        x = x if op is None else node.wire(op, [x], f"axis{axis}")
    return node.name_result(x)


@onnx_op("Split")
def split(node: NodeContext) -> list[OutletId]:
    """Wire one slice for each part."""
    shape = node.fact(0).shape
    axis = node.axis(node.integer("axis", 0), len(shape))
    sizes = _split_sizes(node, shape[axis])
    unify(sum(sizes, TDim.of(0)), shape[axis], f"{node.wire_name} (Split): the parts of axis {axis}")
    return split_parts(node, [node.input(0)] * len(node.outputs), axis, sizes)


def _split_sizes(node: NodeContext, size: TDim) -> list[TDim]:
    if node.opset < 13 and "split" in node.attributes:
        return [TDim.of(part) for part in node.integer_list("split")]
    if node.opset >= 13 and node.has(1):
        return list(node.dims(1, "sizes"))
    count = node.integer("num_outputs", len(node.outputs))
    if count != len(node.outputs):
        raise node.error(f"{count_of(count, 'part')} for {count_of(len(node.outputs), 'output')}")
    if node.opset < 18:
        return [size // count] * count
    chunk = ceil_div(size, count)
    bounds = [simplest_min(chunk * part, size) for part in range(count + 1)]
    return [after - before for before, after in itertools.pairwise(bounds)]


@onnx_op("ReverseSequence")
def reverse_sequence(node: NodeContext) -> OutletId:
    """Reverse the first frames of each batch, as many as its length; the other frames do not change."""
    fact = node.fact(0)
    time = node.axis(node.integer("time_axis", 0), fact.rank)
    batch = node.axis(node.integer("batch_axis", 1), fact.rank)
    node.require({time, batch} == {0, 1}, f"time_axis {time} and batch_axis {batch} must be 0 and 1")
    frame_number = steps(node, fact.shape[time], "frames")
    lengths = node.cast(node.input(1), I64, "lengths")
    if fact.shape[time].is_const:
        lengths = node.wire(RangeCheck(0, int(fact.shape[time])), [lengths], "limited")
    column = node.wire(AddAxis(1), [lengths], "column")
    last = node.apply("sub", column, 1, suffix="last")
    mirror = node.apply("sub", last, frame_number, suffix="mirrored")
    inside = node.apply("less", frame_number, column, suffix="inside")
    index = node.apply("where", inside, mirror, frame_number, suffix="index")
    order = (batch, time, *range(2, fact.rank))
    x = node.wire(Transpose(order), [node.input(0)], "batches") if batch else node.input(0)
    indices = node.wire(AddAxis(2), [index], "indices")
    y = node.wire(GatherBatches(1), [x, indices], "gathered")
    return node.name_result(node.wire(Transpose(order), [y]) if batch else y)


@rule("Split", uniform=True)
def infer_split(node: InferenceNode) -> Iterator[FactRelation]:
    """Invert a concatenation; before opset 18 without lengths, all parts are equally long."""
    x, parts = node.input(0), node.outlets
    yield SameType([x, *parts])
    yield SameRank([x, *parts])
    rank = node.rank(x)
    if rank is None:
        return
    split_axis = node.axis(node.integer("axis", 0), rank)
    yield SizeSum(Axis(x, split_axis), [Axis(part, split_axis) for part in parts])
    if node.opset < 18 and "split" not in node.attributes and not node.has(1):
        for part in parts:
            yield SizeMultiple(Axis(x, split_axis), Axis(part, split_axis), len(parts))
    for axis in (axis for axis in range(rank) if axis != split_axis):
        yield SameSize([Axis(wire, axis) for wire in (x, *parts)])


rule("Slice", uniform=True, parts=(0,))(same_type_and_rank)
rule("ReverseSequence")(same_type_and_rank)


@writes(Slice)
def write_slice(w: NodeWriter, op: Slice) -> str:
    """Write constant bounds, counted from either end; compute others from the length if the model is offline."""
    size = w.input_facts[0].shape[op.axis]
    reaches = op.step > 0 and dim_min(op.end, size) == size
    start = _written_bound(op.start, size)
    stop = int(np.iinfo(np.int64).max) if reaches else _written_bound(op.end, size)
    if start is not None and stop is not None:
        return w.crop(w.inputs[0], op.axis, start, stop, step=op.step)
    if not w.clock.is_offline or op.step < 0:
        bound = op.end if start is not None else op.start
        raise w.error(
            f"its bound {bound} of {count_of(size, 'frame')} cannot be expressed in ONNX; write the model in pulses"
        )
    bounds = [
        w.integers([index], what)
        if index is not None
        else w.emit("Unsqueeze", [w.clock.length(bound), w.integers([0], "axis")], what)
        for index, bound, what in ((start, op.start, "start"), (stop, op.end, "stop"))
    ]
    last = [w.integers([op.axis], "axis"), w.integers([op.step], "step")]
    return w.emit("Slice", [w.inputs[0], *bounds, *last])


def _written_bound(bound: TDim, size: TDim) -> int | None:
    """Return a bound for ONNX: negative if it counts from the end; None if it must be computed."""
    if bound.is_const:
        return int(bound)
    back = bound - size
    return int(back) if back.is_const and int(back) < 0 else None


@writes(Decimate)
def write_decimate(w: NodeWriter, op: Decimate) -> str:
    """Write a slice with a step."""
    return w.crop(w.inputs[0], op.axis, op.first, int(np.iinfo(np.int64).max), step=op.step)


@writes(Frames)
def write_frames(w: NodeWriter, op: Frames) -> str:
    """Write a lookup: row j of its indices has the positions of frame j."""
    indices = np.add.outer(np.arange(w.output_shape()[op.axis]) * op.hop, np.arange(op.size)).astype(np.int64)
    return w.emit("Gather", [w.inputs[0], w.constant(indices, "indices")], axis=op.axis)
