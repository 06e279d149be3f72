"""Padding of any axes."""

import numpy as np

from pulse.errors import CompileError
from pulse.graph import OutletId
from pulse.ops.op import PadMode
from pulse.ops.pad import Pad
from pulse.ops.time_ends import shown_frame
from pulse.program.kernels.copy import Fill
from pulse.program.lower.concat import allocate_like
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.table.memory import Value


@lowers(Pad)
def lower_pad(cx: Lowering, node: PulsedNode, op: Pad) -> list[Value]:
    """Fill a tensor and copy the input into it; copy mirrored and edge frames one by one."""
    x = cx.value(node.inputs[0])
    target = allocate_like(cx, OutletId(node.id), x)
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
    view = inner
    for axis, (before, after) in enumerate(amounts):
        view = _grow(cx, target, view, axis, before, after, op.mode)
    return [target]


def _all_of(value: Value) -> Value:
    if value.dense(value.order):
        return value
    raise CompileError("a padded tensor must be contiguous in memory")


def _grow(
    cx: Lowering, whole: Value, view: Value, axis: int, before: int, after: int, mode: PadMode
) -> Value:
    """Extend one axis of the finished part outwards, by copying its own frames."""
    size, step = view.shape[axis], whole.strides[axis]
    if before or after:
        for frame in (*range(-1, -before - 1, -1), *range(size, size + after)):
            source = shown_frame(frame, size, mode)
            cx.copy(view.part(axis, source, source + 1), _shift(view, axis, frame, step))
    shape = list(view.shape)
    shape[axis] = before + size + after
    return view.view(shape, view.strides, -before * step)


def _shift(view: Value, axis: int, frame: int, step: int) -> Value:
    shape = list(view.shape)
    shape[axis] = 1
    return view.view(shape, view.strides, frame * step)
