"""Slices of one axis."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim, ceil_div, dim_max, dim_min
from pulse.facts import Array, TypedFact
from pulse.ops.dims import require_axis
from pulse.ops.op import Env, Op, Pointwise, Positional, Relation, Tail, Whole, Window
from pulse.ops.time_position import TableRows
from pulse.support.record import record


@record
class Slice(Op):
    """Frames ``start, start + step, …`` of one axis, before ``end``.

    Input    x [..., X, ...]; for a positive step bounds beyond X mean X; for a negative one
             -1 <= end <= start < X, where end -1 means up to the first frame
    Output   y [..., ceil((end - start) / step), ...], nothing if that is negative
    Stream   window(1, step) that starts at ``start``; the last frames, if start moves with the end;
             a table of constant length sliced by the stream's length is a positional source
    Source   ONNX Slice-13

    axis        the axis X
    start, end  the first frame, and the bound that no frame reaches
    step        the distance of frames; negative: backwards
    """

    axis: int
    start: TDim
    end: TDim
    step: int = 1
    symbolic = copies = keeps_values = positional = True

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        require_axis(self.axis, x)
        size = x.shape[self.axis]
        extent = self.start - self.end
        if self.step > 0:
            end = self.end if size.prove_ge(self.end).yes else dim_min(self.end, size)
            extent = dim_max(0, end - self.start)
        return [x.with_size(self.axis, ceil_div(extent, abs(self.step)))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        start, end = self.start.eval(env), self.end.eval(env)
        stop = max(end, 0) if self.step > 0 else None if end < 0 else end
        index = slice(start, stop, self.step)
        return [x[(slice(None),) * self.axis + (index,)]]

    def identity_input(self, inputs: Sequence[TypedFact]) -> int | None:
        return 0 if self.start == 0 and self.step == 1 else None

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        if axis is None:
            return self._table()
        if axis != self.axis:
            return Pointwise((axis,))
        if self.step < 0:
            return Whole("a reversed slice begins with the last frame", "slice forwards")
        if self.start.is_const:
            start = int(self.start)
            skip, first = divmod(start, self.step)
            op = None if self.step == 1 else Decimate(axis, first, self.step)
            return Window(axis, span=first + 1, stride=self.step, skip=skip, op=op)
        length = inputs[0].shape[axis]
        max_frames = (length - self.start).bounds()[1]
        if self.step == 1 and self.end.prove_ge(length).yes and max_frames is not None:
            return Tail(axis, max_frames)
        return Whole(
            f"its start {self.start} depends on the length of the stream", "slice from a constant start"
        )

    def _table(self) -> Relation:
        if not self.start.is_const or self.step < 0:
            return Whole(
                f"where the table begins ({self.start}, step {self.step}) depends on the length of the stream",
                "slice the table forwards from a constant start",
            )
        start, step = int(self.start), self.step
        frame_count = ceil_div(self.end - start, step)
        return Positional(
            self.axis, frame_count, lambda offset, frames: TableRows(self.axis, start, step, offset, frames)
        )

    def detail(self) -> str:
        step = f":{self.step}" if self.step != 1 else ""
        return f"axis {self.axis} {self.start}:{self.end}{step}"


@record
class Decimate(Op):
    """Frames ``first, first + step, …`` of one axis up to its end: a strided slice applied to a window.

    Input    x [..., n, ...]
    Output   y [..., (n - first - 1) // step + 1, ...]
    """

    axis: int
    first: int
    step: int
    copies = keeps_values = True
    detail_format = "axis {axis} {first}::{step}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        return [x.with_size(self.axis, (x.shape[self.axis] - self.first - 1) // self.step + 1)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [inputs[0][(slice(None),) * self.axis + (np.s_[self.first :: self.step],)]]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        if axis is not None and axis != self.axis:
            return Pointwise((axis,))
        return Window(self.axis, span=self.first + 1, stride=self.step, op=self)
