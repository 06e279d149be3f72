"""Frames before the first frame of a stream and after its last one."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, TypedFact
from pulse.ops.clock import Clock, frames_at
from pulse.ops.op import PadMode
from pulse.ops.stateful import Stateful
from pulse.support.record import record
from pulse.support.wording import count_of


@record(eq=False)
class FillEnds(Stateful):
    """Replace every frame outside the stream.

    Input    x [..., overlap + P, ...]: a window that ends with the current pulse
    Output   y [..., keep + P, ...]: a window that ends with the current pulse; index i of the concatenated pulses
             has frame ``i - shift`` of the stream, or a frame that ``mode`` describes if that is outside of it

    axis           the stream axis
    overlap, keep  the frames before the pulse, in x and in y
    offset, shift  the index of frame 0 in the concatenated pulses, of x and of y
    length         the frames of the stream
    mode           constant: frames of ``head`` and ``tail``, or ``fill``; otherwise those of ``padding_frame``
    fill           the value of frames without an array
    head           the frames before the stream; its last one is frame -1
    tail           the frames after the stream; its first one is frame ``length``
    """

    axis: int
    overlap: int
    offset: int
    shift: int
    length: TDim
    mode: PadMode = "constant"
    fill: float = 0.0
    head: Array | None = None
    tail: Array | None = None
    keep: int = 0
    copies = True

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        return [x.with_size(self.axis, x.shape[self.axis] - self.overlap + self.keep)]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        (x,) = inputs
        pulse = x.shape[self.axis] - self.overlap
        base = clock.pulse * pulse
        length = clock.frames(self.length)
        first, count = self.overlap + self.offset - self.shift - self.keep, self.keep + pulse
        inside = self.keep + self.shift <= base and base + pulse - self.shift <= length
        if inside and 0 <= first <= x.shape[self.axis] - count:
            return [frames_at(x, self.axis, first, first + count).copy()]
        y = np.empty_like(frames_at(x, self.axis, 0, self.keep + pulse))
        for i in range(-self.keep, pulse):
            y_frame = frames_at(y, self.axis, self.keep + i, self.keep + i + 1)
            y_frame[...] = self._frame(x, base + i - self.shift, length, base)
        return [y]

    def _frame(self, x: Array, frame: int, length: int, base: int) -> Array | float:
        if frame < 0 or frame >= length:
            if self.mode == "constant":
                return self._constant(frame, length)
            frame = padding_frame(frame, length, self.mode)
        index = frame + self.offset - base + self.overlap
        if not 0 <= index < x.shape[self.axis]:
            return 0.0
        return frames_at(x, self.axis, index, index + 1)

    def _constant(self, frame: int, length: int) -> Array | float:
        table = self.head if frame < 0 else self.tail
        if table is None:
            return self.fill
        index = frame + table.shape[self.axis] if frame < 0 else frame - length
        if not 0 <= index < table.shape[self.axis]:
            return 0.0
        return frames_at(table, self.axis, index, index + 1)

    def detail(self) -> str:
        values = f"fill {self.fill:g}" if self.mode == "constant" else self.mode
        return f"axis {self.axis} {values} outside {count_of(self.length, 'frame')} from {self.offset}"


def padding_frame(frame: int, length: int, mode: PadMode) -> int:
    """Return the frame that padding repeats for an index outside 0 .. length-1.

    The nearest one (edge), or the mirrored one, with the border frame twice (symmetric) or once (reflect).
    """
    if mode == "edge":
        return min(max(frame, 0), length - 1)
    twice = 1 if mode == "symmetric" else 0
    return -frame - twice if frame < 0 else 2 * (length - 1) - frame + twice
