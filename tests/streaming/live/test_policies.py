"""When the model is late, every frame is accounted for, and the sound afterwards has the reported delay."""

from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from pulse.errors import PulseError
from pulse.facts import Array
from streaming.live.config import ENGINES
from streaming.policies import POLICIES
from streaming.stats.live_statistics import Counters
from streaming.virtual.host import VirtualDevice
from tests.streaming.live.runs import BLOCK, RATE, assert_frames_add_up, fields, late_by, runs, sum_model
from tests.streaming.models import cached_program

CONTINUING = tuple(policy for policy in POLICIES if policy != "abort")


def numbered_sound(frames: int) -> Array:
    """Audio in which every frame contains its number, and none is 0."""
    return np.arange(1, frames + 1, dtype=np.float32)[:, None]


def run_with_stall(policy: str, stall_s: float, after: int = 60, **options: Any) -> tuple[Any, ...]:
    """The played sound and the counters of a run in which nothing is computed for a while."""
    before = 20
    x = numbered_sound((before + after) * BLOCK)
    with runs(cached_program(), policy=policy, **options) as (host, live):
        first = host.run(x[: before * BLOCK])
        host.stall(stall_s)
        played = np.concatenate([first, host.run(x[before * BLOCK :])])
        assert_frames_add_up(live, len(x))
        return x, played, live.statistics().counters, live.delay.frames, live


def silent_and_aligned(policy: str, stall_s: float) -> Counters:
    """Counters of a stall that is played as silence and leaves the delay unchanged."""
    x, played, counters, delay, _ = run_with_stall(policy, stall_s)
    aligned = late_by(x, delay, len(x))
    silent = (played == 0) & (aligned != 0)
    assert 0 < counters.frames_silent == counters.frames_skipped == silent.sum() < stall_s * RATE
    np.testing.assert_array_equal(played[~silent], aligned[~silent])
    return counters


@pytest.mark.parametrize("stall_s", [0.015, 0.055, 0.2])
def test_silence_then_catch_up_skips_late_frames(stall_s: float) -> None:
    counters = silent_and_aligned("silence_then_catch_up", stall_s)
    assert (counters.pulses_dropped, counters.frames_lost, counters.pulses) == (0, 0, 79)


@pytest.mark.parametrize("stall_s", [0.015, 0.055, 0.2])
def test_drop_oldest_does_not_compute_late_pulses(stall_s: float) -> None:
    """The played sound equals silence_then_catch_up's."""
    counters = silent_and_aligned("drop_oldest", stall_s)
    assert counters.pulses_dropped == counters.frames_silent // BLOCK, "all that would come too late"
    assert counters.pulses == 79 - counters.pulses_dropped


@pytest.mark.parametrize("stall_s", [0.015, 0.055, 0.2])
def test_wait_plays_all_frames_later(stall_s: float) -> None:
    """All frames are played, later by the silence, which the delay includes."""
    x, played, counters, delay, live = run_with_stall("wait", stall_s)
    assert 0 < counters.frames_silent < stall_s * RATE
    assert (counters.frames_skipped, counters.pulses_dropped, counters.frames_lost) == (0, 0, 0)
    assert delay == live.pipeline.delay_frames + counters.frames_silent
    audible = played[played != 0]
    np.testing.assert_array_equal(audible, x[: len(audible), 0])
    np.testing.assert_array_equal(played[-BLOCK:], late_by(x, delay, len(x))[-BLOCK:])


def test_abort_ends_the_run_with_the_reason() -> None:
    """The run ends with the reason; the device plays silence until it is stopped."""
    with pytest.raises(PulseError, match="not ready in time, and the policy is abort; larger blocks"):
        run_with_stall("abort", 0.1)
    with runs(cached_program(), policy="abort") as (host, live):
        host.stall(0.1)
        host.run(numbered_sound(20 * BLOCK))
        host.advance(0.2)
        assert not host.run(numbered_sound(5 * BLOCK)).any()
        with pytest.raises(PulseError, match="not ready in time"):
            live.wait(0)


@pytest.mark.parametrize("policy", CONTINUING)
@pytest.mark.parametrize("stall_s", [4.5, 10.0])
def test_a_ring_that_overflows_loses_and_counts_frames(policy: str, stall_s: float) -> None:
    """Blocks without space are lost, counted and played as silence; later sound keeps its position."""
    x, played, counters, delay, live = run_with_stall(
        policy, stall_s, after=int((2 * stall_s + 2) * RATE / BLOCK)
    )
    ring = fields(live).in_ring_frames
    assert counters.frames_lost == pytest.approx(stall_s * RATE - ring, abs=2 * BLOCK)
    np.testing.assert_array_equal(played[-BLOCK:], late_by(x, delay, len(x))[-BLOCK:])
    if policy != "wait":
        assert delay == live.pipeline.delay_frames
        assert counters.frames_silent == counters.frames_skipped + counters.frames_lost


@pytest.mark.parametrize("policy", CONTINUING)
def test_sound_after_a_slow_second_has_the_reported_delay(policy: str) -> None:
    """A pulse of 10 ms takes 12 ms during one second; later pulses are fast again."""
    x = numbered_sound(400 * BLOCK)
    with runs(cached_program(), policy=policy, compute_s=0.001, headroom_s=0.03) as (host, live):
        played = [host.run(x[: 50 * BLOCK])]
        host.compute_s = 0.012
        played.append(host.run(x[50 * BLOCK : 150 * BLOCK]))
        late = live.statistics().counters
        if policy == "drop_oldest":
            assert late.frames_silent == 0, "what is computed is played"
            assert 14 <= late.pulses_dropped <= 20
        else:
            assert late.frames_silent > BLOCK
            assert late.missed > 50
        host.compute_s = 0.001
        played.append(host.run(x[150 * BLOCK :]))
        assert_frames_add_up(live, len(x))
        delay, counters = live.delay.frames, live.statistics().counters
    assert counters.frames_silent <= late.frames_silent + 4 * BLOCK
    np.testing.assert_array_equal(
        np.concatenate(played)[-200 * BLOCK :], late_by(x, delay, len(x))[-200 * BLOCK :]
    )


def test_a_too_slow_callback_plays_all_without_silence() -> None:
    """The device calls again as soon as the slow call returns."""
    x = numbered_sound(100 * BLOCK)
    with runs(cached_program(), engine="callback", compute_s=0.025) as (host, live):
        played = host.run(x)
        statistics = live.statistics()
        assert statistics.callback.max_s == pytest.approx(0.025)
        assert statistics.elapsed_s == pytest.approx(100 * 0.025 + 0.01)
        assert statistics.interval.percentile_s(50) == pytest.approx(0.025, rel=0.02)
    np.testing.assert_array_equal(played, x)


MAX_FAULTS, MAX_FAULT_S = 5, 0.3


def assert_faults_accounted_for(data: st.DataObject) -> None:
    """Run random stalls, slow pulses, late callbacks and pauses, then require an exact end."""
    policy = data.draw(st.sampled_from(CONTINUING), "policy")
    engine = data.draw(st.sampled_from([*ENGINES]), "engine")
    block = data.draw(st.sampled_from([50, 160, 333]), "block")
    pulse_frames = data.draw(st.sampled_from([16, 160, 480]), "pulse")
    blocks = MAX_FAULTS * (40 + ceil(MAX_FAULT_S * RATE / block)) + 100  # the last ones are without any
    x, at, pieces = numbered_sound(blocks * block), 0, []
    with runs(cached_program(pulse_frames=pulse_frames), block=block, policy=policy, engine=engine) as (
        host,
        live,
    ):
        for _ in range(data.draw(st.integers(1, MAX_FAULTS), "faults")):
            kind = data.draw(st.sampled_from(["stall", "slow", "late", "gone"]))
            size_s = data.draw(st.floats(0.0, MAX_FAULT_S))
            event(kind)
            count = data.draw(st.integers(1, 40)) * block
            if kind == "stall":
                host.stall(size_s)
            elif kind == "gone":
                host.advance(size_s)
            host.compute_s = size_s / 10 if kind == "slow" else 0.0
            host.devices[0].jitter_s = size_s / 3 if kind == "late" else 0.0
            pieces.append(host.run(x[at : at + count]))
            at += count
            assert_frames_add_up(live, at)
        host.compute_s = host.devices[0].jitter_s = 0.0
        pieces.append(host.run(x[at:]))
        assert_frames_add_up(live, len(x))
        delay, counters = live.delay.frames, live.statistics().counters
    played = np.concatenate(pieces)
    event(f"{policy}: {'late' if counters.frames_silent else 'in time'}")
    if policy != "wait":
        assert counters.frames_silent == counters.frames_skipped
        assert delay == live.pipeline.delay_frames
    np.testing.assert_array_equal(played[-50 * block :], late_by(x, delay, len(x))[-50 * block :])


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_faults_of_a_device_are_accounted_for(data: st.DataObject) -> None:
    assert_faults_accounted_for(data)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(data=st.data())
def test_many_faults_of_a_device_are_accounted_for(data: st.DataObject) -> None:
    assert_faults_accounted_for(data)


@pytest.mark.parametrize("policy", CONTINUING)
def test_a_state_has_each_computed_frame_once(policy: str) -> None:
    """A running sum counts no frame twice, and no dropped frames."""
    x = np.ones((100 * BLOCK, 1), np.float32)
    with runs(cached_program(sum_model), policy=policy, records=True) as (host, live):
        host.run(x[: 20 * BLOCK])
        host.stall(0.1)
        host.run(x[20 * BLOCK :])
        counters = live.statistics().counters
    (outputs,) = live.outputs.flush()
    assert outputs["y"].shape == (1, len(x)), "dropped pulses have frames, too"
    sums = outputs["y"][0, outputs["y"][0] > 0]
    np.testing.assert_array_equal(sums, np.arange(1, len(x) - counters.pulses_dropped * BLOCK + 1))


@pytest.mark.parametrize("policy", CONTINUING)
def test_resampled_sound_is_back_where_it_was(policy: str) -> None:
    device = VirtualDevice(rate_hz=48000)
    tone = np.sin(2 * np.pi * 300 * np.arange(48000 * 2) / 48000).astype(np.float32)
    with runs(cached_program(), block=480, device=device, policy=policy) as (host, live):
        host.run(tone[:24000])
        host.stall(0.1)
        played = host.run(tone[24000:])[-24000:, 0]
        counters, delay = live.statistics().counters, live.delay
    late_s = live.pipeline.delay_s + (counters.frames_silent if policy == "wait" else 0) / 48000
    assert counters.frames_silent > 0
    assert delay.total_s == pytest.approx(late_s, abs=1 / 48000)
    ideal = np.sin(2 * np.pi * 300 * (np.arange(72000, 96000) / 48000 - late_s))
    assert np.abs(played - ideal).max() < 1e-3
