"""Input and output of two devices whose clocks differ: nothing is silent, nothing clicks, the delay stays."""

import numpy as np
import pytest

from pulse.facts import Array
from streaming.errors import DeviceError
from streaming.live.config import EngineConfig, StreamConfig
from streaming.live.pipeline import Pipeline
from streaming.virtual.host import VirtualDevice
from tests.noise import normal_noise
from tests.streaming.live.runs import RATE, fields, runs, virtual_run
from tests.streaming.live.two_clocks import BEND, DELAY, LEVEL, SILENT, TONE_HZ, WINDOW, drive
from tests.streaming.models import cached_program

SLOW_HZ, BLOCK = 8000, 80
WINDOW_S = 1.0


def separate_devices(ppm: float = 0.0, **options: float) -> list[VirtualDevice]:
    """A microphone and a loudspeaker."""
    return [
        VirtualDevice("microphone", 2, 0, RATE, **options),
        VirtualDevice("loudspeaker", 0, 2, RATE, clock_ppm=ppm, **options),
    ]


def run_tone(ppm: float, hours: float) -> tuple[Array, Pipeline]:
    """Run a tone; returns the measured windows and the pipeline."""
    config = StreamConfig(SLOW_HZ, SLOW_HZ, SLOW_HZ, block_frames=BLOCK, two_clocks=True)
    pipeline = Pipeline(
        cached_program(pulse_frames=BLOCK), config, EngineConfig(quality="low", virtual_clock=True)
    )
    windows = int(hours * 3600 / WINDOW_S)
    samples = np.zeros((windows, WINDOW))
    source, target = np.zeros(BLOCK, np.float32), np.zeros(BLOCK, np.float32)
    pipeline.pump()
    drive(
        pipeline.address,
        pipeline.callback_address,
        source.ctypes.data,
        target.ctypes.data,
        BLOCK,
        SLOW_HZ,
        SLOW_HZ * (1 + ppm / 1e6),
        windows,
        WINDOW_S,
        samples.ctypes.data,
    )
    return samples, pipeline


@pytest.mark.parametrize("ppm", [100.0, -250.0])
@pytest.mark.parametrize("hours", [0.25, pytest.param(12, marks=pytest.mark.slow)])
def test_the_delay_stays_for_hours(ppm: float, hours: float) -> None:
    samples, pipeline = run_tone(ppm, hours)
    assert not samples[:, SILENT].any()
    assert not pipeline.control_block.frames_skipped
    assert not pipeline.control_block.frames_lost
    smoothest = (2 * np.pi * TONE_HZ / SLOW_HZ) ** 2
    assert samples[1:, BEND].max() < 1.01 * smoothest
    period = 1 / TONE_HZ
    off_s = (samples[1:, DELAY] - pipeline.delay_s + period / 2) % period - period / 2
    off_s = np.unwrap(off_s, period=period)
    assert np.abs(off_s).max() < 0.0045 * abs(ppm) / 250
    settled = off_s[600:]
    assert np.abs(settled).max() < 2e-5, "a fifth of a sample"
    levels = samples[600:, LEVEL]
    assert levels.min() > 0
    assert levels.max() - levels.min() <= 2 * BLOCK
    assert pipeline.resamplers.outputs[0].tuning_ppm == pytest.approx(-ppm, abs=2)


@pytest.mark.parametrize(("ppm", "jitter_s"), [(150.0, 0.0), (-150.0, 0.006)])
def test_late_callbacks_do_not_move_the_tone(ppm: float, jitter_s: float) -> None:
    """They are late at random, on both sides."""
    devices = separate_devices(ppm, jitter_s=jitter_s)
    frames = 160 * 3000
    tone = np.sin(2 * np.pi * TONE_HZ * np.arange(frames) / RATE).astype(np.float32)
    with runs(cached_program(), device=devices) as (host, live):
        assert live.pipeline.stream_config.two_clocks
        played = host.run(np.stack([tone, tone], 1))[:, 0]
        counters, delay_s = live.statistics().counters, live.pipeline.delay_s
        assert counters.frames_silent == counters.frames_skipped == counters.frames_lost == 0
        assert abs(fields(live).out_written - fields(live).out_read) < RATE / 10
    rate = RATE * (1 + ppm / 1e6)
    first = 160 * 500
    waves = np.exp(2j * np.pi * TONE_HZ * np.arange(len(played)) / rate)
    smooth = np.convolve(played * waves.conj(), np.ones(1600) / 1600, "valid")[first:]
    wander = np.unwrap(np.angle(smooth)) / (2 * np.pi * TONE_HZ)
    assert np.ptp(wander) < 0.003 + jitter_s
    bends = np.abs(np.diff(played, 2))[1600:]
    assert bends.max() < 1.02 * (2 * np.pi * TONE_HZ / RATE) ** 2
    assert delay_s < 0.05


@pytest.mark.parametrize("policy", ["wait", "silence_then_catch_up"])
def test_the_delay_after_a_stall_is_the_reported_one_and_stays(policy: str) -> None:
    """The policy ``wait`` adds the silence to the delay; the clock controller must not take it for drift."""
    seconds = 30
    kernel = np.hanning(33) / 16
    sound = np.convolve(normal_noise(seconds * RATE), kernel, "same").astype(np.float32)
    x = np.stack([sound, sound], 1)
    with runs(cached_program(), device=separate_devices(), policy=policy) as (host, live):
        planned = live.delay.frames
        played = [host.run(x[: 5 * RATE])]
        host.stall(0.3)
        played.append(host.run(x[5 * RATE :]))
        reported, silent = live.delay.frames, live.statistics().counters.frames_silent
    assert silent > 0.2 * RATE
    assert reported == planned + (silent if policy == "wait" else 0)
    output = np.concatenate(played)[:, 0]
    for second in (10, 20, 29):
        start = second * RATE
        candidates = range(reported - 300, reported + 301)
        window = output[start : start + RATE]
        errors = [np.abs(window - sound[start - delay : start - delay + RATE]).sum() for delay in candidates]
        assert candidates[int(np.argmin(errors))] == pytest.approx(reported, abs=2), second


def test_an_output_that_stops_does_not_make_the_delay_longer() -> None:
    """The microphone continues for a second; when both are back, a click comes out as late as before."""
    devices = separate_devices()
    click = np.zeros((160, 2), np.float32)
    click[0] = 1
    with runs(cached_program(), device=devices, reconnect="keep") as (host, live):

        def measured_delay():
            host.run(np.zeros((8000, 2), np.float32))
            played = host.run(np.concatenate([click, np.zeros((8000, 2), np.float32)]))
            return int(np.argmax(np.abs(played[:, 0])))

        before = measured_delay()
        assert abs(before - live.pipeline.delay_frames) <= 160
        for device in (devices[1], devices[0]):
            device.present = False
            host.run(normal_noise(160 * 130, 2))
            device.present = True
            host.advance(1.0)
            host.run(np.zeros((16000, 2), np.float32))
            assert measured_delay() == pytest.approx(before, abs=2)
        counters = live.statistics().counters
        assert (counters.stalls, counters.reopened) == (2, 2)


def test_a_refusal_of_the_second_device_closes_the_first() -> None:
    devices = separate_devices()
    devices[0].refuses = "somebody else has it"
    host, live = virtual_run(cached_program(), device=devices)
    with pytest.raises(DeviceError, match="microphone: cannot be opened, somebody else has it"), live:
        pass
    assert host.streams == ()
