"""The streams that a proof runs: short ones of every kind, and long ones that fill all that the model remembers."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import pulse
from pulse.errors import InputError
from pulse.models import PulsedModel
from pulse.onnx.write.model import to_onnx
from pulse.ops.cumulative import CumSum
from pulse.ops.matmul import MatMul
from pulse.proof import ProofChoice, prove_programs
from pulse.proof.effort import Effort
from pulse.proof.oracle import pulsed_oracle
from pulse.proof.trial_signals import PURE
from pulse.proof.trials import MAX_LONG_S, MAX_TOTAL_S, plan_trials, receptive_frames, short_lengths
from pulse.pulsify.driver import pulsify
from tests.invariants.mutants import graph_mutants, program_of
from tests.pulse.chunks import models as chunk_models
from tests.pulse.model_builder import ModelBuilder

pytestmark = pytest.mark.full_proofs


def filter_model(taps: int, pulse_frames: int, channels: int = 1) -> PulsedModel:
    """A causal filter."""
    builder = ModelBuilder(x=f"1,{channels},T")
    return pulsify(
        builder.model(builder.conv(builder.pad(builder["x"], (taps - 1, 0)), taps)), pulse=pulse_frames
    )


def test_short_lengths_cover_all_residues_of_the_pulse() -> None:
    """Shorter than a pulse, whole pulses, next to them, no multiple, long; eight in a row."""
    lengths = short_lengths(filter_model(3, 6))
    assert lengths == sorted(set(lengths))
    assert lengths[0] == 1
    assert {1, 3, 5, 6, 7, 12, 21, 49} <= set(lengths)
    assert {length % 7 for length in range(12, 20)} == set(range(7))
    assert set(range(12, 20)) <= set(lengths)


def test_short_lengths_begin_with_the_first_that_the_model_takes() -> None:
    builder = ModelBuilder(x="1,2,T")
    valid = short_lengths(pulsify(builder.model(builder.conv(builder["x"], 9)), pulse=4))
    assert valid[0] == 9
    assert max(valid) >= 9 + 8 * 4
    assert any(length % 4 for length in valid)
    assert any(length % 4 == 0 for length in valid)


@pytest.mark.parametrize(("taps", "frames"), [(3, 1), (3, 160), (5000, 1), (5000, 160), (100, 4096)])
def test_long_streams_fill_the_memory_of_an_output_twice(taps: int, frames: int) -> None:
    """They have some thousand frames or some pulses in any case, and no whole number of pulses."""
    model = filter_model(taps, frames)
    trials = plan_trials(model)
    assert receptive_frames(model) == trials.receptive_frames == taps
    assert trials.longest >= trials.wanted_frames >= max(2 * taps, 4096, 8 * frames)
    assert frames == 1 or trials.longest % frames
    assert {trial.signal for trial in trials.trials if trial.long} == {"noise", "mixed"}


def test_states_are_given_time_to_drift() -> None:
    """A sum over all frames sees everything; the stream is longer then."""
    builder = ModelBuilder(x="1,2,T")
    model = pulsify(builder.model(builder.add("total", CumSum(2, False, False), builder["x"])), pulse=4)
    trials = plan_trials(model)
    assert trials.receptive_frames is None
    assert trials.longest >= trials.wanted_frames >= 16_384


def echo(frames: int) -> PulsedModel:
    """A running sum of a signal and the same signal, this many frames ago."""
    builder = ModelBuilder(x="1,2,T")
    late = builder.cut(builder.pad(builder["x"], (frames, 0)), 0, end=builder.length(builder["x"]))
    both = builder.apply("tanh", builder.apply("add", builder["x"], late))
    return pulsify(builder.model(builder.add("total", CumSum(2, False, False), both)), pulse=160)


def test_lengths_are_planned_so_that_every_buffer_overflows() -> None:
    """However long it is; one that evicts a frame too early is right until then, and is found."""
    model = echo(30_000)
    trials = plan_trials(model)
    assert trials.receptive_frames is None
    assert trials.buffered >= 30_000
    assert trials.longest > trials.buffered + 160
    (wrong,) = (mutant for mutant in graph_mutants(model) if "evicts too early" in mutant.name)
    program = program_of(model, wrong)
    good = prove_programs(model, pulsed_oracle(model), [program], ProofChoice([trials.buffered - 160]))
    assert good.equal
    assert not good.has_overflowed
    assert (
        f"the longest buffer holds {trials.buffered:,}, and never evicts a frame"
        in dict(good.pairs())["long enough"]
    )
    comparison = prove_programs(model, pulsed_oracle(model), [program])
    assert not comparison.equal
    assert comparison.values()["overflowed"]


def test_a_stream_of_limited_length_gets_every_signal() -> None:
    """However short it has to be."""
    builder = ModelBuilder(x="1,2,T")
    builder.scope.assume("T <= 100")
    trials = plan_trials(pulsify(builder.model(builder.conv(builder.pad(builder["x"], (2, 0)), 3)), pulse=4))
    assert trials.longest == 100
    assert {trial.signal for trial in trials.trials if trial.length == 100} >= set(PURE)


def test_one_length_gets_every_signal() -> None:
    """All signals have streams of one length, so outputs can be compared; the long streams have one, too."""
    trials = plan_trials(filter_model(3, 4)).trials
    lengths = Counter(trial.length for trial in trials if trial.signal != "noise" and not trial.long)
    assert list(lengths.values()) == [len(PURE) - 1]
    more = plan_trials(filter_model(3, 4), ProofChoice(long=True)).trials
    assert {trial.signal for trial in more if trial.long} == {*PURE, "mixed"}


def test_lengths_of_the_user_are_the_only_ones() -> None:
    """The streams are noise and a mixture, and every signal with ``long``."""
    trials = plan_trials(filter_model(3, 4), ProofChoice([5, 9])).trials
    assert [(trial.length, trial.signal) for trial in trials] == [
        (5, "noise"),
        (5, "mixed"),
        (9, "noise"),
        (9, "mixed"),
    ]
    assert len(plan_trials(filter_model(3, 4), ProofChoice([5], long=True)).trials) == len(PURE) + 1


def heavy() -> PulsedModel:
    """About a billion multiply-adds for a hundred frames."""
    builder = ModelBuilder(x="1,T,2048")
    x, w = builder["x"], builder.constant(np.ones((2048, 2048), np.float32))
    for number in range(3):
        x = builder.add(f"y{number}", MatMul(), x, w)
    return pulsify(builder.model(x), pulse=64)


def test_long_trials_are_offered() -> None:
    """Fewer frames than recommended; the report says so, and how to try the rest."""
    model, effort = heavy(), Effort(heavy())
    assert 0.9 * MAX_LONG_S < effort.seconds(effort.affordable_frames(MAX_LONG_S)) < 1.1 * MAX_LONG_S
    trials, more = plan_trials(model), plan_trials(model, ProofChoice(long=True))
    assert trials == plan_trials(model)
    assert trials.longest < trials.wanted_frames == more.longest
    assert trials.left_out > 0 == more.left_out
    assert sum(effort.seconds(trial.length) for trial in trials.trials) < 1.1 * MAX_TOTAL_S
    report = pulse.verify(filter_model(3, 4), lengths=[3], backend="numpy")
    assert "tries them" not in dict(report.pairs())["long enough"]
    wanting = replace(report, trials=replace(report.trials, wanted_frames=10_000, left_out=7))
    note = "the longest stream has 3 of the 10,000 recommended, 7 others are left out: long= tries them"
    assert note in dict(wanting.pairs())["long enough"]


def test_a_file_in_pulses_takes_time_for_each_pulse() -> None:
    """The file runs pulse by pulse, so its long streams are shorter than those of its source model."""
    model = filter_model(3, 4, channels=8)
    read = pulse.load(to_onnx(model)).pulsify()
    effort = Effort(read)
    assert effort.seconds(4096) == pytest.approx(1024 * effort.seconds(4))
    assert effort.seconds(4096) > 10 * Effort(model).seconds(4096)
    assert effort.affordable_frames(MAX_LONG_S) < Effort(model).affordable_frames(MAX_LONG_S)


def test_lengths_that_the_model_refuses_are_not_tried() -> None:
    """A model that takes multiples only is given these; one with a limit nothing longer."""
    builder = ModelBuilder(x="1,2,T")
    typed = builder.model(builder.apply("tanh", builder["x"]))
    typed.scope.assume("T/5*5 == T")
    typed.scope.assume("T <= 1000")
    report = pulse.verify(typed, pulse=5, backend="numpy").require()
    assert report.skipped == ()
    assert all(length % 5 == 0 for length in report.lengths)
    assert len(report.lengths) > 5
    assert max(report.lengths) <= 1000


def test_trials_of_models_of_chunks_are_long() -> None:
    """They have states; the work is counted by the chunk."""
    model = pulse.stream(chunk_models.cache_of_sound()).model
    trials = plan_trials(model)
    assert trials.receptive_frames is None
    assert trials.longest > 1000


def test_a_stream_of_no_frames_is_tried_with_others() -> None:
    """Its wires are not compared, since no step runs."""
    report = pulse.verify(filter_model(3, 6), lengths=[0, 20]).require()
    assert [trial.length for trial in report.tried] == [0, 0, 20, 20]


@pytest.mark.parametrize("lengths", [[], [-3, 20]])
def test_lengths_that_no_stream_has_are_refused(lengths: list[int]) -> None:
    with pytest.raises(InputError, match="at least one length, of 0 or more frames"):
        pulse.verify(filter_model(3, 6), lengths=lengths)
