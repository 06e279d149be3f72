"""Operators whose stream is not what they say: each kind of lie shows in some stream that a proof runs by itself."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.dim import TDim
from pulse.facts import Array, TypedFact
from pulse.ops.clock import Clock, frames_at
from pulse.ops.op import Cumulative, Env, Op, Relation
from pulse.ops.stateful import OnPulses
from pulse.support.record import record
from tests.pulse.model_builder import ModelBuilder
from tests.pulse.plain_ops import PointwiseOp, SameFactOp

Lie = Callable[[Array, Array, int, Clock, TDim], Array]
"""What a stream gives for a pulse: x, y of the honest op, the number of its first frame, the clock, the length."""


@record(eq=False)
class TwiceWithLie(SameFactOp):
    """Twice the input, offline; its stream is wrong."""

    lie: Lie

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [2 * inputs[0]]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        def make_stream(offset: int, length: TDim, past: Sequence[Array] | None) -> Op:
            return PlainStream(self, offset, length)

        return Cumulative((2,), make_stream)


@record(eq=False)
class PlainStream(OnPulses):
    """The op in a stream."""

    op: Any

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        (x,) = inputs
        first = clock.pulse * x.shape[2] - self.offset
        return [self.op.lie(x, 2 * x, first, clock, self.length)]


@record(eq=False)
class Echo(PointwiseOp):
    """Adds what was 3,000 frames before, and says that it looks at one frame."""

    back: int = 3000

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        y = x.copy()
        frames = x.shape[2]
        if frames > self.back:
            frames_at(y, 2, self.back, frames)[...] += frames_at(x, 2, 0, frames - self.back)
        return [y]


def drift(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    """Right for 2,000 frames."""
    frames = first + np.arange(x.shape[2])
    return np.where(frames > 2000, y + np.float32(0.01), y)


def wrong_at_lengths_of_seven(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    """Wrong in streams whose length is a multiple of seven."""
    ends = clock.end is not None and clock.end % 7 == 0
    return y + np.float32(0.01) if ends else y


def wrong_in_each_seventh_pulse(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    """Wrong in every seventh pulse."""
    return y + np.float32(0.01) if clock.pulse % 7 == 6 else y


def limit(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    """Wrong where the input is large."""
    return 2 * np.clip(x, -6, 6)


def without_small_values(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    """Small values are lost."""
    return np.where(np.abs(x) < 1e-5, 0, y).astype(y.dtype)


def noise_in_silence(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    """Silence is not silent."""
    return np.where(x == 0, np.float32(1e-3), y)


LIES = {
    f.__name__: f
    for f in (
        drift,
        wrong_at_lengths_of_seven,
        wrong_in_each_seventh_pulse,
        limit,
        without_small_values,
        noise_in_silence,
    )
}


def honest(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    """Give the correct pulse."""
    return y


def model_of(op: Op) -> Any:
    builder = ModelBuilder(x="1,2,T")
    return builder.model(builder.add("op", op, builder["x"]))


def test_an_honest_operator_is_proved() -> None:
    """The proof does not fail without a lie."""
    assert pulse.verify(model_of(TwiceWithLie(honest)), pulse=4, backend="numpy").require().equal


@pytest.mark.parametrize(
    ("lie", "pulse_frames"),
    [
        # in pulses of one frame all have been sent before the end is known
        (lie, 2 if lie == "wrong_at_lengths_of_seven" and frames == 1 else frames)
        for lie in LIES
        for frames in (1, 4)
    ],
)
def test_a_lie_is_found(lie: str, pulse_frames: int) -> None:
    report = pulse.verify(model_of(TwiceWithLie(LIES[lie])), pulse=pulse_frames, backend="numpy")
    assert report.outcome == "diverged"
    assert report.divergence is not None
    assert report.divergence.wire == "op"


def test_an_undeclared_window_is_found() -> None:
    """The receptive field says one frame, and the operator looks 3,000 back."""
    report = pulse.verify(model_of(Echo()), pulse=4, backend="numpy")
    assert report.trials.receptive_frames == 1
    assert report.divergence is not None
    assert report.divergence.frame == 3000


@pytest.mark.parametrize("taps", [700, 3000])
def test_a_long_filter_is_filled_twice(taps: int) -> None:
    """A causal filter sees all its taps; the longest stream has twice as many frames, by default."""
    builder = ModelBuilder(x="1,1,T")
    typed = builder.model(builder.conv(builder.pad(builder["x"], (taps - 1, 0)), taps))
    report = pulse.verify(typed, pulse=160, backend="numpy").require()
    assert report.trials.receptive_frames == taps
    assert report.lengths[-1] >= max(2 * taps, 4096)
    assert report.lengths[-1] >= report.trials.wanted_frames


def test_a_wrong_last_tap_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of 3,000 taps meets sound only when the memory is full."""
    from pulse.ops.conv import Conv
    from pulse.program.backends.reference import ReferenceState

    builder = ModelBuilder(x="1,1,T")
    typed = builder.model(builder.conv(builder.pad(builder["x"], (2999, 0)), 3000, name="fir", bias=False))
    plain = ReferenceState.evaluate

    def without_last(self: ReferenceState, node_id: int, inputs: Sequence[Array]) -> Sequence[Array]:
        if isinstance(self.program.model.graph.nodes[node_id].op, Conv):
            x, w = inputs
            w = w.copy()
            w[..., 0] = 0
            inputs = [x, w]
        return plain(self, node_id, inputs)

    monkeypatch.setattr(ReferenceState, "evaluate", without_last)
    divergence = pulse.verify(typed, pulse=160, backend="numpy").divergence
    assert divergence is not None
    assert divergence.frame is not None
    assert divergence.frame >= 2999
    assert replace(divergence, frame=0).wire == "fir"
