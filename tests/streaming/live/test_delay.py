"""The planned delay is the smallest with which nothing is silent; with resampling, the smaller of two pre-rolls."""

from dataclasses import replace
from math import gcd, lcm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.live.delay import PlannedDelay, Timing
from streaming.virtual.host import VirtualDevice
from tests.noise import normal_noise
from tests.streaming.live.runs import RATE, assert_frames_add_up, late_by, runs
from tests.streaming.models import cached_program

RATES = (8000, 11025, 16000, 22050, 44100, 48000)


@pytest.mark.parametrize("block", [1, 7, 64, 100, 160, 240, 480, 1000])
@pytest.mark.parametrize("pulse", [1, 16, 100, 160, 480])
def test_without_resampling_the_delay_is_a_formula(pulse: int, block: int) -> None:
    """Blocks of any size have the delay of blocks of one frame."""
    timing = Timing(pulse, block, RATE, RATE, RATE)
    assert timing.plan_delay(0.0, False) == PlannedDelay(pulse - gcd(pulse, block), 0, 0)
    assert timing.plan_delay(0.0, True) == PlannedDelay(pulse - gcd(pulse, block), 0, block)
    assert Timing(pulse, 0, RATE, RATE, RATE).plan_delay(0.0, False).frames == pulse - 1


@pytest.mark.parametrize(
    ("headroom_s", "blocks"), [(None, 1), (0.0, 1), (0.01, 1), (0.0101, 2), (0.02, 2), (0.05, 5)]
)
def test_headroom_is_whole_blocks(headroom_s: float | None, blocks: int) -> None:
    timing = Timing(160, 160, RATE, RATE, RATE)
    assert timing.plan_delay(headroom_s, True).headroom_frames == 160 * blocks
    assert timing.plan_delay(headroom_s, True, two_clocks=True).headroom_frames == 160 * (blocks + 2)
    assert timing.plan_delay(headroom_s, False).headroom_frames == 0


def needed_frames(timing: Timing, preroll: int, blocks: int) -> int:
    """Frames of silence that a pipeline needs at the start, and those of its pre-roll; all its blocks are tried."""
    arrived = np.arange(1, blocks + 1) * timing.block_frames
    outputs = -(-(arrived - timing.ahead_in_frames) * timing.rate_hz // timing.rate_in_hz)
    filled = (np.maximum(outputs, 0) + preroll) // timing.pulse_frames * timing.pulse_frames
    played = -(-(filled - timing.ahead_out_frames) * timing.rate_out_hz // timing.rate_hz)
    silence_frames = max(int(np.max(arrived - np.maximum(played, 0))), 0)
    return silence_frames + timing.in_device_frames(preroll)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(RATES),
    st.sampled_from(RATES),
    st.integers(1, 200),
    st.integers(1, 400),
    st.integers(0, 100),
    st.integers(0, 100),
)
def test_the_delay_with_resampling_is_minimal_of_two_prerolls(
    device_hz: int, hz: int, pulse: int, block: int, ahead_in_frames: int, ahead_out_frames: int
) -> None:
    timing = Timing(pulse, block, hz, device_hz, device_hz, ahead_in_frames, ahead_out_frames)
    schedule = timing.plan_delay(None, False)
    period = lcm(device_hz * pulse // gcd(device_hz * pulse, hz), block)
    period += ahead_in_frames + (ahead_out_frames + 2 * pulse) * device_hz // hz + 2 * block
    blocks = min(period // block, 3000)
    look_ahead = -(-ahead_in_frames * hz // device_hz) % pulse
    assert schedule.preroll_model_frames in (0, look_ahead)
    assert schedule.frames >= needed_frames(timing, schedule.preroll_model_frames, blocks)
    if blocks == period // block:
        assert schedule.frames == min(needed_frames(timing, preroll, blocks) for preroll in (0, look_ahead))
    assert schedule.frames <= timing.plan_delay(None, True).frames - block


def test_the_delay_of_a_very_long_period_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound exceeds the needed delay by less than a pulse."""
    timings = [Timing(pulse, 100, 16000, 44100, 44100, 88, 32) for pulse in (16, 99, 160)]
    exact = [timing.plan_delay(None, False).frames for timing in timings]
    monkeypatch.setattr("streaming.live.delay.MAX_PERIOD_STEPS", 0)
    for timing, frames in zip(timings, exact):
        bound = timing.plan_delay(None, False).frames
        assert frames <= bound <= frames + timing.in_device_frames(timing.pulse_frames) + 2


def count_silent_frames(rate: int, pulse: int, block: int, **options: float | str) -> int:
    """The number of silent frames in a run of 3 s of noise."""
    frames = 3 * rate // block * block
    device = VirtualDevice(rate_hz=rate)
    with runs(cached_program(pulse_frames=pulse), block=block, device=device, **options) as (host, live):
        played, planned = host.run(normal_noise(frames)), live.pipeline.planned_delay
        frames_silent = live.statistics().counters.frames_silent
    if not frames_silent:
        assert np.flatnonzero(played)[0] >= planned.frames - 3 * planned.resampling_frames
    return frames_silent


@pytest.mark.parametrize(
    ("rate", "pulse", "block"),
    [
        (16000, 160, 64),
        (16000, 100, 333),
        (48000, 160, 480),
        (48000, 160, 128),
        (48000, 16, 1000),
        (44100, 160, 441),
        (44100, 160, 256),
        (8000, 160, 50),
        (22050, 80, 90),
    ],
)
@pytest.mark.parametrize("engine", ["worker", "callback"])
def test_one_frame_less_is_not_enough(
    rate: int, pulse: int, block: int, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert count_silent_frames(rate, pulse, block, engine=engine, headroom_s=0.0) == 0
    plan_delay = Timing.plan_delay

    def less(*arguments):
        planned = plan_delay(*arguments)
        return replace(planned, reblocking_frames=planned.reblocking_frames - 1)

    monkeypatch.setattr(Timing, "plan_delay", less)
    assert count_silent_frames(rate, pulse, block, engine=engine, headroom_s=0.0) > 0


@pytest.mark.parametrize(
    ("block", "pulse", "headroom_s"), [(160, 160, 0.01), (160, 480, 0.01), (160, 480, 0.02), (64, 160, 0.008)]
)
def test_a_worker_has_exactly_the_headroom_to_answer(block: int, pulse: int, headroom_s: float) -> None:
    assert count_silent_frames(RATE, pulse, block, compute_s=headroom_s - 1e-6, headroom_s=headroom_s) == 0
    assert count_silent_frames(RATE, pulse, block, compute_s=headroom_s + 1e-6, headroom_s=headroom_s) > 0


@pytest.mark.parametrize("policy", ["wait", "silence_then_catch_up", "drop_oldest"])
def test_blocks_of_unknown_size_lengthen_the_delay_once(policy: str) -> None:
    """Later blocks are not silent, and the statistics report the longer delay."""
    sizes = [160, 700, 40, 1000, 333]
    x = 1 + np.abs(normal_noise(40 * sum(sizes), 1))
    with runs(cached_program(), block=0, policy=policy) as (host, live):
        before, played = live.delay.frames, host.run(x, sizes)
        delay, counters = live.delay.frames, live.statistics().counters
        assert_frames_add_up(live, len(x))
    assert counters.frames_silent == counters.frames_skipped == counters.pulses_dropped == 0
    assert before < delay <= 159 + 1000
    np.testing.assert_array_equal(played[len(x) // 2 :], late_by(x, delay, len(x))[len(x) // 2 :])
