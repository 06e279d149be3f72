"""Operators whose streams differ from offline: a proof finds each kind of defect without hints."""

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

pytestmark = pytest.mark.full_proofs

StreamDefect = Callable[[Array, Array, int, Clock, TDim], Array]
"""A function that returns a pulse from x, the correct y, the index of its first frame, the clock and the length."""


@record(eq=False)
class DoubleWithDefect(SameFactOp):
    """Doubles its input offline; its stream has a defect."""

    defect: StreamDefect

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [2 * inputs[0]]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        def make_stream(offset: int, length: TDim, past: Sequence[Array] | None) -> Op:
            return DefectiveStream(self, offset, length)

        return Cumulative((2,), make_stream)


@record(eq=False)
class DefectiveStream(OnPulses):
    """The streaming form of ``DoubleWithDefect``."""

    op: Any

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        (x,) = inputs
        first = clock.pulse * x.shape[2] - self.offset
        return [self.op.defect(x, 2 * x, first, clock, self.length)]


@record(eq=False)
class Echo(PointwiseOp):
    """Adds the frame ``back`` frames earlier, and declares that it reads one frame only."""

    back: int = 3000

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        y = x.copy()
        frames = x.shape[2]
        if frames > self.back:
            frames_at(y, 2, self.back, frames)[...] += frames_at(x, 2, 0, frames - self.back)
        return [y]


def drift(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    """Correct up to frame 2,000."""
    frames = first + np.arange(x.shape[2])
    return np.where(frames > 2000, y + np.float32(0.01), y)


def wrong_at_lengths_of_seven(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    ends = clock.end is not None and clock.end % 7 == 0
    return y + np.float32(0.01) if ends else y


def wrong_in_each_seventh_pulse(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    return y + np.float32(0.01) if clock.pulse % 7 == 6 else y


def clip_large_inputs(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    """Wrong for large inputs."""
    return 2 * np.clip(x, -6, 6)


def without_small_values(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    return np.where(np.abs(x) < 1e-5, 0, y).astype(y.dtype)


def noise_in_silence(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    return np.where(x == 0, np.float32(1e-3), y)


DEFECTS = {
    f.__name__: f
    for f in (
        drift,
        wrong_at_lengths_of_seven,
        wrong_in_each_seventh_pulse,
        clip_large_inputs,
        without_small_values,
        noise_in_silence,
    )
}


def correct(x: Array, y: Array, first: int, clock: Clock, length: TDim) -> Array:
    return y


def model_of(op: Op) -> Any:
    builder = ModelBuilder(x="1,2,T")
    return builder.model(builder.add("op", op, builder["x"]))


def test_a_correct_operator_is_proved() -> None:
    """The other tests fail only because of the defect."""
    assert pulse.verify(model_of(DoubleWithDefect(correct)), pulse=4, backend="numpy").require().equal


@pytest.mark.parametrize(
    ("defect", "pulse_frames"),
    [
        # in pulses of one frame all have been sent before the end is known
        (defect, 2 if defect == "wrong_at_lengths_of_seven" and frames == 1 else frames)
        for defect in DEFECTS
        for frames in (1, 4)
    ],
)
def test_a_defect_is_found(defect: str, pulse_frames: int) -> None:
    report = pulse.verify(model_of(DoubleWithDefect(DEFECTS[defect])), pulse=pulse_frames, backend="numpy")
    assert report.outcome == "diverged"
    assert report.divergence is not None
    assert report.divergence.wire == "op"


def test_an_undeclared_window_is_found() -> None:
    """The declared receptive field is one frame, but the operator reads 3,000 frames back."""
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
