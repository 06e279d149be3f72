"""Changes to a running pipeline: mute, bypass, reset, snapshots and statistics, without a gap in the sound."""

import numpy as np
import pytest

from pulse.errors import PulseError
from streaming.live import control
from streaming.native import control_block as cb
from tests.noise import normal_noise
from tests.streaming.live.runs import (
    BLOCK,
    delayed_model,
    engines,
    fields,
    late_by,
    play_with_changes,
    played_by,
    reciprocal_model,
    runs,
    session_outputs,
    stereo,
    sum_model,
)
from tests.streaming.models import cached_program, filter_model, limited_model

engines_of_backends = pytest.mark.parametrize(
    ("engine", "backend"), [("worker", "numba"), ("worker", "numpy"), ("callback", "numba")]
)
"""A program in Python does not run in a callback."""


@engines
@pytest.mark.parametrize("reserve", [0, 100])
def test_mute_and_bypass_fade_within_a_pulse_and_keep_the_delay(engine: str, reserve: int) -> None:
    """The model keeps running, and the bypassed input is as late as the sound of the model."""
    compiled, x = cached_program(filter_model), normal_noise(6 * 1600, 1)
    with runs(compiled, engine=engine, reserve_frames=reserve, records=True) as (host, live):

        def switch(**switches):
            for name, on in switches.items():
                setattr(live.control, name, on)

        played = play_with_changes(
            host,
            x,
            lambda: switch(muted=True),
            lambda: switch(muted=False),
            lambda: switch(bypassed=True),
            lambda: switch(muted=True),
            lambda: switch(bypassed=False, muted=False),
        )
        delay = live.delay.frames
        assert (live.control.muted, live.control.bypassed) == (False, False)
    assert delay == max(reserve, 2) + BLOCK * (engine == "worker")
    sound = late_by(played_by(compiled, x, "y"), delay, len(x)).reshape(6, 1600, 1)
    dry = late_by(x, delay, len(x)).reshape(6, 1600, 1)
    silence = np.zeros((1600, 1))
    settled = slice(2 * BLOCK, None)
    for piece, expected in zip(played, (sound[0], silence, sound[2], dry[3], silence, sound[5])):
        np.testing.assert_array_equal(piece[settled], expected[settled])
    first = BLOCK if engine == "worker" else 0
    fade = sound[1][first : first + BLOCK] * (1 - np.arange(1, BLOCK + 1) / BLOCK)[:, None]
    np.testing.assert_allclose(played[1][first : first + BLOCK], fade, atol=1e-6)
    (outputs,), (expected,) = live.outputs.flush(), session_outputs(compiled, x)
    for name in expected:
        np.testing.assert_array_equal(outputs[name], expected[name])


@engines_of_backends
def test_reset_restarts_every_stream_at_the_next_pulse(engine: str, backend: str) -> None:
    """The recorded outputs begin again too."""
    x = np.ones((40 * BLOCK, 2), np.float32)
    compiled = cached_program(sum_model, backend=backend)
    with runs(compiled, engine=engine, channels="each", device=stereo(), records=True) as (host, live):
        played = np.concatenate(play_with_changes(host, x, live.control.reset))
        delay = live.delay.frames
    numbers = np.arange(1, 20 * BLOCK + 1, dtype=np.float32)[:, None]
    twice = np.concatenate([numbers, numbers])
    np.testing.assert_array_equal(played, np.repeat(late_by(twice, delay, len(x)), 2, 1))
    for outputs in live.outputs.flush():
        np.testing.assert_array_equal(outputs["y"][0], twice[:, 0])


@engines_of_backends
def test_a_restored_stream_continues_from_its_snapshot(engine: str, backend: str) -> None:
    """The snapshot can also be restored into a state."""
    x = np.arange(30 * BLOCK, dtype=np.float32)[:, None] % 7
    compiled = cached_program(sum_model, backend=backend)
    with runs(compiled, engine=engine) as (host, live):
        host.run(x[: 10 * BLOCK])
        host.advance(0.001)
        snapshots = live.control.snapshot()
        state = compiled.spawn()
        state.restore(snapshots[0])
        host.run(x[10 * BLOCK : 20 * BLOCK])
        host.advance(0.001)
        live.control.restore(snapshots)
        played, delay = host.run(x[20 * BLOCK :]), live.delay.frames
    expected = [state.step(piece.T)["y"][0] for piece in np.split(x[20 * BLOCK :], 10)]
    np.testing.assert_array_equal(played[delay:, 0], np.concatenate(expected)[: len(played) - delay])


def test_a_filter_is_silent_for_its_delay_after_a_reset() -> None:
    """Frames of its delay are not valid after a reset; its old memory must not be played."""
    x = 1 + np.abs(normal_noise(20 * BLOCK, 1))
    with runs(cached_program(delayed_model), engine="callback") as (host, live):
        first, second = play_with_changes(host, x, live.control.reset)
    assert not second[:5].any()
    assert not first[:5].any()
    np.testing.assert_array_equal(second[5:], x[10 * BLOCK : -5])


def test_an_unapplied_command_is_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device stands still, and the callback computes: there is no other thread to do it."""
    monkeypatch.setattr(control, "ANSWER_TIMEOUT_S", 0.02)
    with runs(cached_program(sum_model), engine="callback") as (host, live):
        host.run(np.ones((10 * BLOCK, 1), np.float32))
        live.control.running = True
        for command in (
            live.control.reset,
            live.control.snapshot,
            lambda: live.control.swap(cached_program(sum_model)),
        ):
            with pytest.raises(
                PulseError, match=r"no pulse has ended within 0\.02 s: the device may have stopped"
            ):
                command()
            assert fields(live).command == cb.NONE
        assert not live.control.is_swapping
        live.control.running = False
        played = host.run(np.ones((BLOCK, 1), np.float32))
        assert played[0] == 10 * BLOCK + 1, "it was not reset"
        live.control.reset()
        assert host.run(np.ones((BLOCK, 1), np.float32))[0] == 1


def test_nan_becomes_silence_and_is_counted() -> None:
    x = normal_noise(10 * BLOCK, 1)
    x[[5, 700]] = 0
    with runs(cached_program(reciprocal_model), engine="callback", records=True) as (host, live):
        played = host.run(x)
        assert fields(live).nonfinite == 2
    with np.errstate(divide="ignore"):
        expected = (1 / x).astype(np.float32)
    assert np.isinf(live.outputs.flush()[0]["y"][0, [5, 700]]).all(), "Python gets what the model gives"
    expected[[5, 700]] = 0
    np.testing.assert_allclose(played, expected, rtol=1e-6)


def test_levels_count_from_the_last_statistics() -> None:
    x = np.zeros((8 * BLOCK, 2), np.float32)
    x[10], x[4 * BLOCK + 3] = (0.5, -0.75), (-0.25, 0.125)
    with runs(cached_program(), channels="each", device=stereo(), engine="callback") as (host, live):
        live.statistics()
        host.run(x[: 4 * BLOCK])
        assert live.statistics().levels_in == (0.5, 0.75)
        live.control.muted = True
        host.run(x[4 * BLOCK :])
        statistics = live.statistics()
        assert statistics.levels_in == (0.25, 0.125)
        assert statistics.levels_out == pytest.approx((0.25 * (1 - 4 / BLOCK), 0.125 * (1 - 4 / BLOCK)))
        assert live.statistics().levels_in == (0.0, 0.0)


def test_a_run_ends_at_the_frame_limit_unless_reset() -> None:
    x = np.ones((5 * BLOCK, 1), np.float32)
    ended = pytest.raises(
        PulseError, match="its limit of 1000 frames; reset it earlier, or convert it for more"
    )
    with ended, runs(cached_program(limited_model)) as (host, live):
        host.run(x)
        live.control.reset()
        assert host.run(x).all()
        assert not live.wait(0)
        host.run(np.ones((4 * BLOCK, 1), np.float32))
        host.advance(0.2)
        live.wait(0)
