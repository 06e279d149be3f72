"""Faults of a stream, counted."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from pulse.dim import TDim
from pulse.facts import I64, Array, TypedFact
from pulse.ops.check import Check
from pulse.ops.clock import Clock, frames_at
from pulse.ops.stateful import Stateful
from pulse.support.record import record

NOTHING = TDim.of(0)
CheckTime: TypeAlias = Literal["frames", "always", "end"]


@record(eq=False)
class CountFaults(Stateful):
    """Count the values of an operand for which its node has no result, in all pulses so far.

    Input    the operand
    Output   int64 [1]
    State    the same

    check           the check of the node
    node            its label
    op              its operation
    when            which elements count: those of the stream's frames (frame j is at index j + offset, and there are
                    ``length``), all, or those of the last pulse, before which nothing is known
    axis            axis of the frames in the operand; None if it has none. In the last pulse they are the last
                    ``length``
    offset, length  position of the stream's frames, and their number
    first           frames before this one are known before the stream begins
    """

    check: Check
    node: str
    op: str
    when: CheckTime
    axis: int | None = None
    offset: int = 0
    length: TDim = NOTHING
    first: int = 0
    steps = 0

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(I64, (TDim.of(1),))]

    @property
    def awaits(self) -> tuple[int, TDim] | None:
        return (self.offset, self.length) if self.when == "frames" else None

    def initial_state(self) -> list[Array]:
        return [np.zeros(1, I64)]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        (x,) = inputs
        if self.when != "end" or clock.pulse == clock.last:
            state[0] = state[0] + np.count_nonzero(self.check.find_failing(self._valid(x, clock)))
        return [state[0].copy()]

    def _valid(self, x: Array, clock: Clock) -> Array:
        if self.axis is None:
            return x
        frames = x.shape[self.axis]
        if self.when == "end":
            return frames_at(x, self.axis, max(0, frames - clock.frames(self.length)), frames)
        start, stop = clock.span(frames, self.offset, self.length)
        first_valid = self.first + self.offset - clock.pulse * frames
        return frames_at(x, self.axis, max(start, first_valid), max(stop, first_valid))

    def detail(self) -> str:
        return f"{self.node} input {self.check.slot} {self.when}"
