"""Memory of past frames."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, TypedFact
from pulse.ops.clock import Clock, frames_at
from pulse.ops.stateful import Stateful
from pulse.support.record import record


@record(eq=False)
class Delay(Stateful):
    """Delay a stream by ``delay`` frames, and precede each pulse with the ``overlap`` frames before it.

    Input    x [..., P, ...]
    Output   y [..., overlap + P, ...]: frames ``n*P - delay - overlap .. (n+1)*P - delay`` of the stream
    State    the last delay + overlap frames, initially ``initial``

    axis            the stream axis
    delay, overlap  in frames
    initial         [..., delay + overlap, ...]
    """

    axis: int
    delay: int
    overlap: int
    initial: Array
    copies = True
    detail_format = "axis {axis} delay {delay} overlap {overlap}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        return [x.with_size(self.axis, x.shape[self.axis] + self.overlap)]

    def initial_state(self) -> list[Array]:
        return [self.initial.copy()]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        (x,) = inputs
        buffer = np.concatenate([state[0], x], self.axis)
        frames = x.shape[self.axis]
        state[0] = frames_at(buffer, self.axis, frames, buffer.shape[self.axis]).copy()
        return [frames_at(buffer, self.axis, 0, frames + self.overlap).copy()]


@record
class LastFrames(Stateful):
    """The last valid frames seen so far.

    Input    x [..., P, ...], whose frame j is at index j + offset and which has ``length`` frames
    Output   y [..., frames, ...]: the newest at the end; zeros if there were fewer
    State    the same

    axis            the stream axis
    frames          how many are kept
    offset, length  where frame 0 of x is in the concatenated pulses, and the number of frames of x
    fact            the fact of x
    """

    axis: int
    frames: int
    offset: int
    length: TDim
    fact: TypedFact
    copies = True
    detail_format = "axis {axis} last {frames} of {length} delay {offset}"

    @property
    def awaits(self) -> tuple[int, TDim]:
        return self.offset, self.length

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [inputs[0].with_size(self.axis, self.frames)]

    def initial_state(self) -> list[Array]:
        return [np.zeros(self.fact.with_size(self.axis, self.frames).sizes, self.fact.dtype)]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        (x,) = inputs
        start, stop = clock.span(x.shape[self.axis], self.offset, self.length)
        buffer = np.concatenate([state[0], frames_at(x, self.axis, start, stop)], self.axis)
        size = buffer.shape[self.axis]
        state[0] = frames_at(buffer, self.axis, size - self.frames, size).copy()
        return [state[0].copy()]
