"""The bench compares like with like: every timed form computes the model's outputs."""

from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest

import pulse
from bench.measurement.noise import noise_pulses
from bench.models import PUBLISHED, catalogue, tcn, tcn_explicit_state
from bench.models.entry import Entry
from bench.models.gru import gru
from pulse.facts import Array
from pulse.program.program import Program

contests = pytest.importorskip("bench.peers.contest", exc_type=ImportError)
forms = pytest.importorskip("bench.peers.runtime_form", exc_type=ImportError)
outputs = pytest.importorskip("bench.peers.outputs", exc_type=ImportError)
FRAMES = 240
CHECKED = 12
MISSING = PUBLISHED.with_name("none")
SYNTHETIC = {entry.key: entry for entry in catalogue(MISSING)}
REAL = {entry.key: entry for entry in catalogue() if entry.key not in SYNTHETIC}
TRACT_WRONG = "denoiser"
"""A model that tract pulsifies with a wrong output."""


@pytest.fixture(scope="module")
def x() -> Array:
    return np.random.default_rng(0).normal(size=(1, 20, FRAMES)).astype(np.float32)


def offline(x: Array) -> Array:
    session = onnxruntime.InferenceSession(tcn().SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


@pytest.mark.parametrize("key", [key for key in SYNTHETIC if key not in ("denoiser", "tcn_1")])
def test_models_are_seeded(key: str) -> None:
    entry = SYNTHETIC[key]
    assert entry.source().SerializeToString() == entry.source().SerializeToString()


def test_both_forms_of_the_network_have_the_same_weights() -> None:
    offline = {weight.name: weight for weight in tcn().graph.initializer}
    explicit = {weight.name: weight for weight in tcn_explicit_state(4).model.graph.initializer}
    assert all(explicit[name] == weight for name, weight in offline.items())


def test_the_network_is_causal_and_alive(x: Array) -> None:
    whole = offline(x)
    assert whole.shape == (1, 16, FRAMES)
    assert 0.1 < whole.std() < 10
    np.testing.assert_allclose(offline(x[:, :, :50]), whole[:, :, :50], atol=1e-5)


@pytest.mark.parametrize("key", SYNTHETIC)
def test_every_timed_form_is_right(key: str) -> None:
    """``contest`` compares this project, and every form of the others, with the offline result."""
    contest = contests.contest(SYNTHETIC[key], CHECKED, 1)
    assert set(contest.best) == {"pulse", "onnxruntime", "tract"}
    assert all(form.status == "right" for form in contest.best.values())
    others = [form for form in contest.forms if form.status != "right"]
    assert [form.how for form in others] == (["pulsed by tract"] if key == TRACT_WRONG else [])


@pytest.mark.slow
@pytest.mark.parametrize("key", list(REAL))
def test_published_models_run_in_onnxruntime_as_here(key: str) -> None:
    """The exported model and the author's model both run."""
    contest = contests.contest(REAL[key], 2 * CHECKED, 1)
    statuses = {form.how: form.status for form in contest.forms if form.runtime == "onnxruntime"}
    assert set(statuses.values()) == {"right"}
    assert "exported" in statuses


def test_a_missing_folder_leaves_the_published_models_out() -> None:
    assert all(not key.startswith("gtcrn") for key in SYNTHETIC)


def test_a_wrong_or_failing_peer_is_left_out() -> None:
    """The report says why, and the model is not timed."""
    entry = Entry("gru", "GRU", 1, lambda: gru(8, 1))
    program = pulse.stream(entry.source(), 1)
    pulses = noise_pulses(program, 1.0)[:CHECKED]

    class Wrong(contests.PulsePeer):
        def step(self, feed):
            return {name: value + 1 for name, value in super().step(feed).items()}

    def absent():
        raise ValueError("\nno such operator\nin line 3")

    expected = outputs.reference(entry, entry.source(), None, program, pulses)
    wrong = forms.try_form("other", "a form", lambda: Wrong(program), program, pulses, expected)
    fails = forms.try_form("other", "another", absent, program, pulses, expected)
    right = forms.try_form("other", "a third", lambda: contests.PulsePeer(program), program, pulses, expected)
    assert (wrong.status, wrong.peer) == ("wrong", None)
    assert (fails.status, fails.note, fails.peer) == ("fails", "no such operator", None)
    assert right.status == "right"
    assert dict(forms.fastest([wrong, fails, right], pulses)) == {"other": right}


def test_the_fastest_right_form_of_a_runtime_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step advances the clock by the time that its form takes."""
    now_ns = [0]

    class Peer:
        def __init__(self, step_ns):
            self.step_ns = step_ns

        def step(self, pulse):
            now_ns[0] += self.step_ns

    clock = SimpleNamespace(perf_counter_ns=lambda: now_ns[0])
    monkeypatch.setattr("bench.measurement.timing.time", clock)
    runtime_forms = [
        forms.RuntimeForm("other", str(step_ns), "right", "", Peer(step_ns)) for step_ns in (2000, 1000, 4000)
    ]
    assert dict(forms.fastest(runtime_forms, [np.zeros(1)])) == {"other": runtime_forms[1]}


@pytest.fixture(scope="module")
def conformer() -> Program:
    """The conformer, whose outputs come seven frames late."""
    return pulse.stream(SYNTHETIC["conformer"].source(), 8)


def test_delayed_frames_are_dropped_before_comparison(conformer: Program) -> None:
    """The delay that tract reports is dropped from the frames of tract."""
    (port,) = conformer.outputs
    pulses = noise_pulses(conformer, 1.0)[:3]
    frames = outputs.stream_outputs(contests.PulsePeer(conformer), conformer, pulses)["y"].shape[1]
    assert frames == 3 * 8 - port.delay
    assert outputs.distance({"y": np.ones((1, 5, 2))}, {"y": np.ones((1, 9, 2))}, conformer) == 0


@pytest.mark.parametrize(
    "result",
    [np.ones((1, 0, 2)), np.ones((1, 5, 3)), np.full((1, 5, 2), np.nan)],
    ids=["no frames", "another size", "NaN"],
)
def test_results_that_cannot_be_compared_are_infinitely_far(result: np.ndarray, conformer: Program) -> None:
    assert outputs.distance({"y": result}, {"y": np.ones((1, 9, 2))}, conformer) == np.inf
