"""Padding of any axes."""

from collections.abc import Sequence

import numpy as np

from pulse.errors import CompileError
from pulse.graph import OutletId
from pulse.ops.op import PadMode
from pulse.ops.pad import Pad
from pulse.ops.time_ends import padding_frame
from pulse.program.kernels.copy import FillRow
from pulse.program.lower.concat import allocate_like
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


@lowers(Pad)
def lower_pad(lowering: Lowering, node: PulsedNode, op: Pad) -> list[TensorView]:
    """Fill a tensor and copy the input into it; copy mirrored and edge frames run by run."""
    x = lowering.value(node.inputs[0])
    target = allocate_like(lowering, OutletId(node.id), x)
    amounts = [(int(before), int(after)) for before, after in op.pads]
    if op.mode == "constant":
        lowering.emit(constant_row(_require_contiguous(target), op.fill))
    view = copy_inside(lowering, x, target, amounts)
    if op.mode == "constant":
        return [target]
    for axis, (before, after) in enumerate(amounts):
        view = _extend_axis(lowering, target, view, axis, before, after, op.mode)
    return [target]


def constant_row(target: TensorView, fill: float) -> FillRow:
    """Return the instruction that fills a contiguous tensor with a number."""
    size = target.dtype.itemsize
    bits = int(np.array([fill]).astype(target.dtype).view(f"u{size}")[0])
    return FillRow(dst=target, size=size, count=target.size, bits=bits)


def copy_inside(
    lowering: Lowering, x: TensorView, target: TensorView, amounts: Sequence[tuple[int, int]]
) -> TensorView:
    """Copy a tensor into what is left of its padded one between the amounts before and after; return that part."""
    interior = target
    for axis, (before, _) in enumerate(amounts):
        interior = interior.part(axis, before, before + x.shape[axis])
    lowering.copy(x, interior)
    return interior


def pad_axes(
    lowering: Lowering,
    x: TensorView,
    amounts: Sequence[tuple[int, int]],
    order: Sequence[int],
    fill: float = 0.0,
) -> TensorView:
    """Pad a tensor with a number, with its axes in an order; return it unchanged if it needs none."""
    if all(pair == (0, 0) for pair in amounts):
        return x
    shape = [before + size + after for size, (before, after) in zip(x.shape, amounts)]
    target = lowering.allocate_temporary(shape, x.dtype, order)
    for margin in _margins(target, amounts, order):
        lowering.emit(constant_row(margin, fill))
    copy_inside(lowering, x, target, amounts)
    return target


def _margins(
    target: TensorView, amounts: Sequence[tuple[int, int]], order: Sequence[int]
) -> list[TensorView]:
    """Return the parts that padding fills, if these are runs of memory; else the whole tensor."""
    axis = next(axis for axis in order if target.shape[axis] > 1 or amounts[axis] != (0, 0))
    if any(pair != (0, 0) for other, pair in enumerate(amounts) if other != axis):
        return [target]
    (before, after), size = amounts[axis], target.shape[axis]
    ends = target.part(axis, 0, before), target.part(axis, size - after, size)
    return [end for end in ends if end.size]


def _require_contiguous(value: TensorView) -> TensorView:
    """Return the tensor. Raises CompileError: it has gaps in memory."""
    if value.is_dense(value.order):
        return value
    raise CompileError("a padded tensor must be contiguous in memory")


def _extend_axis(
    lowering: Lowering, whole: TensorView, view: TensorView, axis: int, before: int, after: int, mode: PadMode
) -> TensorView:
    """Extend one axis of the finished part outwards, by copying runs of its own frames."""
    size, step = view.shape[axis], whole.strides[axis]
    for frames in (range(-before, 0), range(size, size + after)):
        for first, sources in equally_spaced_runs([padding_frame(frame, size, mode) for frame in frames]):
            stride = sources[1] - sources[0] if len(sources) > 1 else 1
            origin = _frames_of(view, axis, sources[0], len(sources), step * stride, step)
            lowering.copy(origin, _frames_of(view, axis, frames[first], len(sources), step, step))
    shape = list(view.shape)
    shape[axis] = before + size + after
    return view.view(shape, view.strides, -before * step)


def _frames_of(view: TensorView, axis: int, first: int, count: int, stride: int, step: int) -> TensorView:
    """Return ``count`` frames from ``first``, which may be outside the view, ``stride`` elements apart."""
    shape, strides = list(view.shape), list(view.strides)
    shape[axis], strides[axis] = count, stride
    return view.view(shape, strides, first * step)


def equally_spaced_runs(numbers: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return the runs of equally spaced numbers in order, each with the index of its first one."""
    result: list[tuple[int, list[int]]] = []
    for index, number in enumerate(numbers):
        last = result[-1][1] if result else []
        if len(last) == 1 or (len(last) > 1 and number - last[-1] == last[1] - last[0]):
            last.append(number)
        else:
            result.append((index, [number]))
    return result
