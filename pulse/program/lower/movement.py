"""Ops that move elements: views where strides can say it, copies where not."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pulse.errors import CompileError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.elementwise_within import Within
from pulse.ops.gather import Gather
from pulse.ops.op import PadMode
from pulse.ops.pad import Pad
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose
from pulse.ops.slice import Decimate, Slice
from pulse.ops.slice_frames import Frames
from pulse.ops.time_ends import shown_frame
from pulse.program.kernels import gather as kernels
from pulse.program.kernels.copy import Fill
from pulse.program.lower.elementwise import broadcast
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.memory import Value


@lowers(Transpose)
def lower_transpose(cx: Lowering, node: PulsedNode, op: Transpose) -> list[Value]:
    """A view."""
    return [cx.value(node.inputs[0]).transpose(op.perm)]


@lowers(Within)
def lower_within(cx: Lowering, node: PulsedNode, op: Within) -> list[Value]:
    """The tensor itself; faults are counted beside it."""
    return [cx.value(node.inputs[0])]


@lowers(AddAxis, RemoveAxis, Reshape)
def lower_reshape(cx: Lowering, node: PulsedNode, op: AddAxis | RemoveAxis | Reshape) -> list[Value]:
    """A view where the axes lie well, else a copy in row-major order first."""
    x, shape = cx.value(node.inputs[0]), cx.fact(OutletId(node.id)).sizes
    view = x.reshape(shape)
    if view is None:
        view = cx.ordered(x, range(len(x.shape))).reshape(shape)
    assert view is not None
    return [view]


@lowers(Slice)
def lower_slice(cx: Lowering, node: PulsedNode, op: Slice) -> list[Value]:
    """A view; backwards too."""
    x = cx.value(node.inputs[0])
    size = cx.fact(OutletId(node.id)).sizes[op.axis]
    shape, strides = list(x.shape), list(x.strides)
    shape[op.axis], strides[op.axis] = size, strides[op.axis] * op.step
    start = int(op.start) * x.strides[op.axis]
    backwards = x.view(shape, strides, start)
    return [backwards if op.step > 0 else _forwards(cx, OutletId(node.id), backwards)]


def _forwards(cx: Lowering, outlet: OutletId, view: Value) -> Value:
    """A copy without negative strides, which views of views could not bear."""
    target = cx.new(outlet)
    cx.copy(view, target)
    return target


@lowers(Decimate)
def lower_decimate(cx: Lowering, node: PulsedNode, op: Decimate) -> list[Value]:
    """A view."""
    x = cx.value(node.inputs[0])
    return [x.part(op.axis, op.first, x.shape[op.axis], op.step)]


@lowers(Frames)
def lower_frames(cx: Lowering, node: PulsedNode, op: Frames) -> list[Value]:
    """A view in which frames share memory."""
    x = cx.value(node.inputs[0])
    step = x.strides[op.axis]
    strides = [*x.strides[: op.axis], op.hop * step, *x.strides[op.axis :]]
    return [x.view(cx.fact(OutletId(node.id)).sizes, strides)]


@lowers(Expand)
def lower_expand(cx: Lowering, node: PulsedNode, op: Expand) -> list[Value]:
    """A view with strides of zero."""
    return [broadcast(cx.value(node.inputs[0]), cx.fact(OutletId(node.id)).sizes)]


def like(cx: Lowering, outlet: OutletId, value: Value) -> Value:
    """Memory for a wire with its axes as another tensor of the same rank has them."""
    if any(step == 0 and size != 1 for size, step in zip(value.shape, value.strides)):
        return cx.new(outlet)
    return cx.new(outlet, value.order)


@lowers(Concat)
def lower_concat(cx: Lowering, node: PulsedNode, op: Concat) -> list[Value]:
    """Each part copied to its place."""
    parts = [cx.value(outlet) for outlet in node.inputs]
    target = like(cx, OutletId(node.id), max(parts, key=lambda part: part.size))
    start = 0
    for part in parts:
        cx.copy(part, target.part(op.axis, start, start + part.shape[op.axis]))
        start += part.shape[op.axis]
    return [target]


@lowers(Tile)
def lower_tile(cx: Lowering, node: PulsedNode, op: Tile) -> list[Value]:
    """Copies side by side."""
    x = cx.value(node.inputs[0])
    outlet = OutletId(node.id)
    target = cx.new(outlet)
    repeats = [int(times) for times in op.repeats]
    shape = [n for times, size in zip(repeats, x.shape) for n in (times, size)]
    inside = [n for size, step in zip(x.shape, target.strides) for n in (step * size, step)]
    outside = [n for step in x.strides for n in (0, step)]
    cx.copy(x.view(shape, outside), target.view(shape, inside))
    return [target]


@lowers(Pad)
def lower_pad(cx: Lowering, node: PulsedNode, op: Pad) -> list[Value]:
    """A filled tensor with the input inside; mirrored or edge frames copied one by one."""
    x = cx.value(node.inputs[0])
    target = like(cx, OutletId(node.id), x)
    amounts = [(int(before), int(after)) for before, after in op.pads]
    inner = target
    for axis, (before, _) in enumerate(amounts):
        inner = inner.part(axis, before, before + x.shape[axis])
    if op.mode == "constant":
        bits = int(np.array([op.fill]).astype(x.dtype).view(f"u{x.dtype.itemsize}")[0])
        cx.emit(Fill(dst=_all_of(target), size=x.dtype.itemsize, count=target.size, bits=bits))
    cx.copy(x, inner)
    if op.mode == "constant":
        return [target]
    ready = inner
    for axis, (before, after) in enumerate(amounts):
        ready = _grown(cx, target, ready, axis, before, after, op.mode)
    return [target]


def _all_of(value: Value) -> Value:
    if value.dense(value.order):
        return value
    raise CompileError("a padded tensor must lie densely in memory")


def _grown(
    cx: Lowering, whole: Value, ready: Value, axis: int, before: int, after: int, mode: PadMode
) -> Value:
    """Fill one axis of the ready part outwards from frames that it already has."""
    size, step = ready.shape[axis], whole.strides[axis]
    if before or after:
        for frame in (*range(-1, -before - 1, -1), *range(size, size + after)):
            source = shown_frame(frame, size, mode)
            cx.copy(ready.part(axis, source, source + 1), _shifted(ready, axis, frame, step))
    shape = list(ready.shape)
    shape[axis] = before + size + after
    return ready.view(shape, ready.strides, -before * step)


def _shifted(ready: Value, axis: int, frame: int, step: int) -> Value:
    shape = list(ready.shape)
    shape[axis] = 1
    return ready.view(shape, ready.strides, frame * step)


@lowers(Gather)
def lower_gather(cx: Lowering, node: PulsedNode, op: Gather) -> list[Value]:
    """Rows looked up by constant or computed indices."""
    x, indices = (cx.value(outlet) for outlet in node.inputs)
    rank, width = len(x.shape), len(indices.shape)
    known = cx.known(node.inputs[1])
    outlet = OutletId(node.id)
    if known is not None and known.size == 1:
        start = int(known.ravel()[0]) % x.shape[op.axis]
        view = x.part(op.axis, start, start + 1)
        shape = [*x.shape[: op.axis], *[1] * width, *x.shape[op.axis + 1 :]]
        return [view.view(shape, [*x.strides[: op.axis], *[0] * width, *x.strides[op.axis + 1 :]])]
    if known is not None and known.ndim == 1 and _regular(known % x.shape[op.axis]):
        wrapped = known % x.shape[op.axis]
        step = int(wrapped[1] - wrapped[0])
        return [x.part(op.axis, int(wrapped[0]), int(wrapped[-1]) + 1, step)]
    return [_looked_up(cx, outlet, x, indices, op.axis, rank, width)]


def _regular(indices: Array) -> bool:
    """Whether constant indices go up in equal steps."""
    steps = np.diff(indices)
    return len(indices) > 1 and steps[0] > 0 and bool((steps == steps[0]).all())


def _looked_up(
    cx: Lowering, outlet: OutletId, x: Value, indices: Value, axis: int, rank: int, width: int
) -> Value:
    if indices.dtype not in (np.dtype(np.int64), np.dtype(np.int32)):
        raise CompileError(f"{cx.node}: indices must be i64 or i32")
    lead, rest = list(range(axis)), list(range(axis + 1, rank))
    x = cx.ordered(x, [*_by_stride(x, lead), axis, *rest]) if not _suits(x, axis, lead, rest) else x
    order = [*_by_stride(x, lead), *range(axis, axis + width), *(a + width - 1 for a in rest)]
    target = cx.new(outlet, order)
    if not target.dense(order):
        target = cx.temporary(target.shape, target.dtype, order)
    indices = cx.ordered(indices, range(width))
    run = int(np.prod([x.shape[a] for a in rest], dtype=np.int64))
    outer = int(np.prod([x.shape[a] for a in lead], dtype=np.int64))
    inner = [a for a in _by_stride(x, lead) if x.shape[a] != 1]
    source_step = x.strides[inner[-1]] if inner else 0
    count = indices.size
    cx.emit(
        kernels.Gather(
            src=x,
            indices=indices,
            dst=target,
            size=x.dtype.itemsize,
            index_size=indices.dtype.itemsize,
            outer=outer,
            count=count,
            run=run,
            src_outer=source_step,
            src_axis=x.strides[axis],
            dst_outer=count * run,
            dst_axis=run,
            axis=x.shape[axis],
        )
    )
    return target


def _by_stride(x: Value, axes: Sequence[int]) -> list[int]:
    return [axis for axis in x.order if axis in axes]


def _suits(x: Value, axis: int, lead: Sequence[int], rest: Sequence[int]) -> bool:
    """Whether the leading axes are one loop, and the trailing ones one run."""
    step = 1
    for other in reversed(rest):
        if x.shape[other] != 1 and x.strides[other] != step:
            return False
        step *= x.shape[other]
    lead_axes = [a for a in _by_stride(x, lead) if x.shape[a] != 1]
    return all(x.strides[outer] == x.strides[inner] * x.shape[inner] for outer, inner in pairwise(lead_axes))
