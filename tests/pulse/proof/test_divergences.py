"""A good model agrees with its stream; each kind of bug that is put in on purpose is found at its wire."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.api import verify
from pulse.errors import DivergenceError, PulsifyError
from pulse.facts import Array
from pulse.models import TypedModel
from pulse.ops.clock import Clock
from pulse.ops.time import Delay
from pulse.ops.time_ends import FillEnds
from pulse.ops.time_position import Range
from pulse.program import lowering
from pulse.program.lower import time as time_lowering
from pulse.program.lowering import Lowering
from pulse.program.table.memory import TensorView
from pulse.proof.locating import first_divergence
from pulse.proof.oracle import pulsed_oracle
from pulse.proof.tolerance import ExpectedOutputs
from pulse.proof.trial_signals import draw_feeds
from pulse.proof.trials import Trial, short_lengths
from pulse.pulsify.driver import pulsify
from pulse.pulsify.graph_builder import PulsedGraphBuilder
from pulse.pulsify.network import PulsedNode
from pulse.pulsify.stream_wires import StreamWire
from tests.pulse.model_builder import ModelBuilder

pytestmark = pytest.mark.full_proofs


def small() -> TypedModel:
    """A causal conv, a same conv after it, a residual: a prefix, ends and delays."""
    builder = ModelBuilder(x="1,2,T")
    causal = builder.conv(builder.pad(builder["x"], (2, 0)), 3, name="causal")
    same = builder.conv(builder.apply("tanh", causal), 3, (1, 1), name="same")
    return builder.model(builder.apply("add", same, causal, name="sum"))


def test_good_models_agree_on_both_backends() -> None:
    """The report lists what was run."""
    report = verify(small(), 4)
    assert report.equal
    assert report.require() is report
    assert report.outcome == "equal"
    assert report.verdict == "equal: every frame of every stream"
    assert report.backends == ("numpy", "numba")
    assert report.skipped == ()
    assert set(report.lengths) > set(short_lengths(report.model))
    assert 0 <= report.error < 1e-4
    assert 0 < report.worst.share <= 1
    assert verify(small(), 4, backend="numpy").backends == ("numpy",)


def test_the_pulse_is_found_and_one_frame_pulses_work() -> None:
    """The default is the smallest pulse."""
    report = verify(small())
    assert report.model.pulse == 1
    assert report.equal


def test_lengths_that_offline_refuses_are_skipped_and_reported() -> None:
    """Reflection needs more frames than it adds; where no length is left, that is an error."""
    builder = ModelBuilder(x="1,2,T")
    typed = builder.model(builder.pad(builder["x"], (3, 3), "reflect"))
    report = verify(typed, 4, lengths=[1, 3, 4, 11], backend="numpy")
    assert (report.lengths, report.skipped, report.equal) == ((4, 11), (1, 3), True)
    with pytest.raises(
        PulsifyError, match=r"none of the lengths \[1, 2\]; at 2: the model needs \(T>=4\), .*; give lengths"
    ):
        verify(typed, 4, lengths=[1, 2])


def test_a_difference_that_does_not_come_again_is_reported() -> None:
    """The tolerance is partly drawn at random, so a second look may find nothing: the proof ends with a report."""
    pulsed = small().declutter().pulsify(pulse=4)
    feeds = draw_feeds(pulsed, 9, "noise", (0, 0), {})
    program, reference = pulsed.compile(backend="numpy"), ExpectedOutputs(pulsed_oracle(pulsed), feeds)
    divergence = first_divergence(program, feeds, reference, Trial(9, "noise"))
    assert divergence.frame is None
    assert "at the limit of the tolerance" in str(divergence)


def ones(self: PulsedGraphBuilder, stream: StreamWire, frames: int) -> Array:
    """History that begins with ones."""
    fact = self.graph.fact(stream.outlet)
    shape = list(fact.sizes)
    shape[stream.fact.axis] = frames
    return np.ones(shape, fact.dtype)


def test_a_wrong_history_shows_at_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report names the first wire after the buffer, the first frame and the first backend."""
    monkeypatch.setattr(PulsedGraphBuilder, "initial_frames", ones)
    report = verify(small(), 4, lengths=[9])
    divergence = report.divergence
    assert divergence is not None
    assert not report.equal
    assert (divergence.wire, divergence.op, divergence.frame, divergence.backend, divergence.length) == (
        "causal",
        "Conv",
        0,
        "numpy",
        9,
    )
    assert divergence.offline != divergence.streamed
    assert divergence.signal == "noise"
    assert abs(divergence.offline - divergence.streamed) > divergence.allowed > 0
    with pytest.raises(
        DivergenceError,
        match=r"causal \(Conv\) diverges at frame 0 of a stream of 9 frames of noise \(numpy\)",
    ):
        report.require()


def test_a_delay_that_is_off_by_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the frames after the buffer are wrong: the residual, not the convolutions."""
    plain = Delay.step

    def early(self: Delay, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        (y,) = plain(self, inputs, state, clock)
        return [np.roll(y, -1, self.axis) if self.overlap == 0 else y]

    monkeypatch.setattr(Delay, "step", early)
    divergence = verify(small(), 4, lengths=[9], backend="numpy").divergence
    assert divergence is not None
    assert (divergence.wire, divergence.backend) == ("sum", "numpy")


def test_an_end_that_is_not_filled_is_found_at_its_first_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """The padding of the last pulse is NaN, so what leaks shows, and only there."""

    def leak(self: FillEnds, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        return [inputs[0].copy()]

    monkeypatch.setattr(FillEnds, "step", leak)
    divergence = verify(small(), 4, lengths=[8, 9], backend="numpy").divergence
    assert divergence is not None
    assert (divergence.wire, divergence.length) == ("same", 8)
    assert divergence.frame == 7
    assert np.isnan(divergence.streamed)


def test_a_lowering_that_is_wrong_is_the_backend_s_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numpy agrees, numba does not, from the first row of the table that is misplaced."""
    from pulse.ops.time_position import Positions

    def late(lowering: Lowering, node: PulsedNode, op: Positions) -> list[TensorView]:
        return time_lowering.lower_positions(lowering, node, replace(op, offset=op.offset + 1))

    monkeypatch.setitem(lowering.LOWER, Positions, late)
    builder = ModelBuilder(x="1,2,T")
    steps = builder.add("steps", Range(0.0, 1.0, builder.length(builder["x"]), np.dtype(np.float32)))
    divergence = verify(
        builder.model(builder.apply("add", builder["x"], steps, name="sum")), 4, lengths=[1, 6]
    ).divergence
    assert divergence is not None
    assert (divergence.wire, divergence.backend, divergence.length, divergence.frame) == (
        "sum",
        "numba",
        1,
        0,
    )
    assert (divergence.streamed - divergence.offline) == pytest.approx(-1.0)


def test_a_wrong_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fill that is written as another number: the first frame after the end."""
    plain: Callable[..., list[TensorView]] = time_lowering.lower_fill_ends

    def other(lowering: Lowering, node: PulsedNode, op: FillEnds) -> list[TensorView]:
        return plain(lowering, node, replace(op, fill=op.fill + 1.0))

    monkeypatch.setitem(lowering.LOWER, FillEnds, other)
    divergence = verify(small(), 4, lengths=[2, 9]).divergence
    assert divergence is not None
    assert (divergence.wire, divergence.backend, divergence.length, divergence.frame) == (
        "same",
        "numba",
        2,
        1,
    )


def test_a_wrong_length_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outputs have another size than offline."""
    good = pulsify

    def longer(*args: Any, **options: Any) -> Any:
        model = good(*args, **options)
        (port,) = model.outputs
        return replace(model, outputs=(replace(port, length=port.length - 1),))

    monkeypatch.setattr("pulse.pulsify.driver.pulsify", longer)
    with pytest.raises(DivergenceError, match=r"it is \[1, 2, 8\] float32, offline \[1, 2, 9\] float32"):
        verify(small(), 4, lengths=[9], backend="numpy").require()


def test_integers_and_bools_are_compared_exactly() -> None:
    """The outputs are a sum of random integers and a comparison."""
    builder = ModelBuilder(x="1,2,T,i64", y="1,2,T")
    typed = builder.model(
        builder.apply("add", builder["x"], builder["x"]),
        builder.apply("greater", builder["y"], builder.apply("tanh", builder["y"])),
    )
    assert verify(typed, 3, lengths=[1, 8], backend="numpy").require().error == 0


def test_verify_takes_typed_models() -> None:
    """``pulse.verify`` takes typed models too."""
    assert pulse.verify(small(), pulse=4, lengths=[5]).require().equal
