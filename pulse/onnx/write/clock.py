"""Time inside the file: pulses so far, the stream's end, and positions made from both."""

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.errors import WriteError
from pulse.onnx.write.dims import DimWriter
from pulse.onnx.write.graph import GraphWriter
from pulse.support.wording import spell

PULSES, END = "pulses", "end"
"""The names of the two registers, i64 scalars."""


class ClockWriter(DimWriter):
    """Writes positions and lengths; the file has only those that the model needs.

    The position of the first frame of a pulse is ``pulses * step``, step being the frames of that wire in a pulse.
    """

    def __init__(self, graph: GraphWriter, symbol: Symbol, is_offline: bool = False) -> None:
        super().__init__(graph, self._end_of)
        self.symbol = symbol
        self.is_offline = is_offline
        """Whether the file is an offline model: the length of a stream is the size of an input."""
        self._pulses: str | None = None
        self.end: str | None = None
        """The name of the input with the stream's length; None while nothing needs it."""

    @property
    def pulses(self) -> str:
        """How many pulses came before this one."""
        if self._pulses is None:
            self._pulses = self._graph.add_state(PULSES, np.array(0, np.int64))
            self._graph.keep(self._pulses, self.add_op("Add", [self._pulses, self.number(1)], "pulses+1"))
        return self._pulses

    def stream_end(self, free: str | None = None) -> str:
        """Return the input with the symbol's frames in the whole stream; the first call names it, ``free`` if given."""
        if self.end is None:
            self.end = free or self._graph.names.new(END)
        return self.end

    def positions(self, step: int, low: int, count: int, trailing: int = 0) -> str:
        """Compute ``pulses*step + low ...``, ``count`` numbers, i64 [count, 1 ...] with this many ones."""
        offsets = np.arange(low, low + count, dtype=np.int64).reshape(count, *(1,) * trailing)
        return self._add_to_base(
            step, self._graph.constant(offsets, f"frames.{low}.{count}"), f"{low}.{count}.{trailing}"
        )

    def position(self, step: int, low: int) -> str:
        """Compute ``pulses*step + low``, an i64 scalar."""
        return self._base(step) if low == 0 else self._add_to_base(step, self.number(low), str(low))

    def emit_positions_inside(self, positions: str, after_start: bool, before: TDim | None) -> str | None:
        """Emit which positions are not negative, and less than a length; return the wire, None without a condition."""
        answers: list[str] = []
        if after_start:
            answers.append(self.add_op("GreaterOrEqual", [positions, self.number(0)], f"{positions}>=0"))
        if before is not None:
            answers.append(self.add_op("Less", [positions, self.length(before)], f"{positions}<{before}"))
        if len(answers) == 2:
            return self.add_op("And", answers, f"0<={positions}<{before}")
        return answers[0] if answers else None

    def emit_has_reached(self, pulses: int) -> str:
        """Emit whether this many pulses came before this one; return the wire, a bool scalar."""
        return self.add_op("GreaterOrEqual", [self.pulses, self.number(pulses)], f"pulses>={pulses}")

    def start(self, step: int, offset: int) -> str:
        """Return how many of a pulse's frames come before the first one of the stream, i64 scalar in 0 … step."""
        if offset <= 0:
            return self.number(0)
        frames_before = self.add_op("Neg", [self.position(step, -offset)], f"{offset}-{step}p")
        return self._clip_frames(step, frames_before, f"{offset}-{step}p", f"start.{step}.{offset}")

    def stop(self, step: int, offset: int, length: TDim) -> str:
        """Return how many of a pulse's frames come before the last one's end, i64 scalar in 0 … step."""
        text = f"{length}-{step}p+{offset}"
        frames_before = self.add_op("Sub", [self.length(length), self.position(step, -offset)], text)
        return self._clip_frames(step, frames_before, text, f"stop.{length}.{step}.{offset}")

    def _clip_frames(self, step: int, frames: str, frames_text: str, text: str) -> str:
        """Return a number of frames limited to 0 … step; both texts identify it."""
        not_negative = self.add_op("Max", [frames, self.number(0)], f"0..{frames_text}")
        return self.add_op("Min", [not_negative, self.number(step)], text)

    def _end_of(self, symbol: Symbol) -> str:
        if symbol != self.symbol:
            raise WriteError(
                f"a length depends on {symbol.name}, which does not stream; fix it with {spell('inputs')}"
            )
        return self.stream_end()

    def _base(self, step: int) -> str:
        if step == 1:
            return self.pulses
        return self.add_op("Mul", [self.pulses, self.number(step)], f"pulses*{step}")

    def _add_to_base(self, step: int, other: str, text: str) -> str:
        return self.add_op("Add", [self._base(step), other], f"pulses*{step}+{text}")
