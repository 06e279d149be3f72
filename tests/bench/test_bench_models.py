"""The bench compares like with like: every peer computes the offline network, pulse by pulse."""

import numpy as np
import onnxruntime
import pytest

from bench.models import tcn, tcn_explicit_state

peers = pytest.importorskip("bench.peers", exc_type=ImportError)
timing = pytest.importorskip("bench.timing")
FRAMES = 240


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).normal(size=(1, 20, FRAMES)).astype(np.float32)


@pytest.fixture(scope="module")
def offline(x):
    session = onnxruntime.InferenceSession(tcn().SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def stream(peer, x, pulse):
    starts = range(0, x.shape[2], pulse)
    return np.concatenate([peer.step(np.ascontiguousarray(x[:, :, i : i + pulse])) for i in starts], axis=2)


def test_the_network_is_seeded():
    assert tcn().SerializeToString() == tcn().SerializeToString()


def test_both_forms_have_the_same_weights():
    offline = {weight.name: weight for weight in tcn().graph.initializer}
    explicit = {weight.name: weight for weight in tcn_explicit_state(4).model.graph.initializer}
    assert all(explicit[name] == weight for name, weight in offline.items())


def test_the_output_is_alive(offline):
    assert offline.shape == (1, 16, FRAMES)
    assert 0.1 < offline.std() < 10


def test_the_network_is_causal(x, offline):
    session = onnxruntime.InferenceSession(tcn().SerializeToString(), providers=["CPUExecutionProvider"])
    (start,) = session.run(None, {"x": x[:, :, :50]})
    np.testing.assert_allclose(start, offline[:, :, :50], atol=1e-5)


@pytest.mark.parametrize("pulse", [1, 8])
def test_onnxruntime_streams_the_offline_result(x, offline, pulse):
    explicit = tcn_explicit_state(pulse)
    peer = peers.OnnxRuntimePeer(explicit.model.SerializeToString(), explicit.states)
    np.testing.assert_allclose(stream(peer, x, pulse), offline, atol=2e-5)


@pytest.mark.parametrize("pulse", [1, 8])
def test_tract_streams_the_offline_result(x, offline, pulse):
    peer = peers.TractPeer(tcn().SerializeToString(), pulse)
    assert peer.delay == 0
    np.testing.assert_allclose(stream(peer, x, pulse), offline, atol=2e-5)


def test_alternate_runs_each_stepper_equally_often():
    calls = {"a": 0, "b": 0}

    def count(name):
        calls[name] += 1

    result = timing.alternate({name: lambda name=name: count(name) for name in calls}, 3, 20, warmup_steps=5)
    assert calls == {"a": 65, "b": 65}
    assert all(len(rounds) == 3 for rounds in result.rounds.values())


def test_a_comparison_takes_medians_over_rounds_and_ratios_round_by_round():
    rounds = {
        "a": [timing.Percentiles(p50, 2 * p50, 3 * p50, 4 * p50, 5 * p50) for p50 in (1.0, 2.0, 4.0)],
        "b": [timing.Percentiles(p50, p50, p50, p50, p50) for p50 in (3.0, 4.0, 20.0)],
    }
    comparison = timing.Comparison(rounds)
    assert comparison.median("a") == timing.Percentiles(2.0, 4.0, 6.0, 8.0, 20.0)
    assert comparison.ratio("b", "a") == timing.Ratio(3.0, 2.0, 5.0)
    assert "3.00 (2.00..5.00)" in str(comparison)


def test_percentiles_are_in_microseconds():
    assert timing.Percentiles.of([1000, 2000, 3000]).p50_us == 2.0


def test_fed_cycles_through_the_pulses():
    seen = []
    stepper = timing.fed(seen.append, [1, 2])
    for _ in range(3):
        stepper()
    assert seen == [1, 2, 1]


@pytest.mark.parametrize("pulse", [1, 8])
def test_this_project_streams_the_offline_result(x, offline, pulse):
    peer = peers.PulsePeer(tcn().SerializeToString(), pulse)
    assert peer.delay == 0
    np.testing.assert_allclose(stream(peer, x, pulse), offline, atol=2e-5)
