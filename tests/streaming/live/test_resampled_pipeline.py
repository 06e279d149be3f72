"""A device of another rate plays the model's output at its position, to a fraction of a sample."""

import numpy as np
import pytest

import pulse
from pulse.facts import Array
from streaming.audio.files import AudioReader
from streaming.builtin import model_path, noisy_path
from streaming.native.resample import AudioResampler
from streaming.virtual.host import VirtualDevice
from tests.streaming.live.runs import RATE, engines, runs
from tests.streaming.models import cached_program, filter_model

TONES_HZ = (97.0, 440.0, 1234.5, 3210.0)
LEVELS = np.array([0.3, 0.2, 0.15, 0.1])
PHASES = np.array([0.1, 1.0, 2.0, 3.0])
MIN_QUALITY_DB = {"low": 66, "medium": 88, "high": 105}


def tones(times_s: Array, gains: Array | float = 1.0) -> Array:
    """A sum of tones at these times; gains may be complex, one for each tone."""
    waves = np.exp(1j * (2 * np.pi * np.outer(times_s, TONES_HZ) + PHASES))
    return (waves * (gains * LEVELS)).imag.sum(1)


def response(taps: Array, rate: int) -> Array:
    """The gain of a filter for each tone."""
    delays = np.arange(len(taps)) / rate
    return np.array([(taps * np.exp(2j * np.pi * hz * delays)).sum() for hz in TONES_HZ])


def quality_db(sound: Array, ideal: Array) -> float:
    return 10 * np.log10(np.mean(ideal**2) / np.mean((sound - ideal) ** 2))


@engines
@pytest.mark.parametrize(
    ("rate", "pulse_frames", "block", "quality"),
    [
        (48000, 160, 480, "medium"),
        (48000, 160, 441, "low"),
        (44100, 160, 441, "medium"),
        (44100, 99, 256, "high"),
        (8000, 160, 64, "medium"),
        (48000, 7, 1000, "medium"),
    ],
)
def test_tones_are_played_with_the_reported_delay(
    rate: int, pulse_frames: int, block: int, quality: str, engine: str
) -> None:
    frames = rate // block * block
    x = tones(np.arange(frames) / rate)
    compiled = cached_program(filter_model, pulse_frames)
    device = VirtualDevice(rate_hz=rate)
    with runs(compiled, block=block, device=device, quality=quality, engine=engine) as (host, live):
        played = host.run(x.astype(np.float32))[:, 0]
        delay_s, statistics = live.pipeline.delay_s, live.statistics()
        assert statistics.counters.frames_silent == statistics.counters.frames_lost == 0
    assert statistics.delay.frames == round(delay_s * rate)
    assert statistics.delay.total_s == pytest.approx(delay_s, abs=1 / rate)
    gains = response(np.arange(1, 6) / 7, RATE) * np.exp(-2j * np.pi * np.array(TONES_HZ) * 2 / RATE)
    ideal = tones(np.arange(frames) / rate - delay_s, gains)
    whole = slice(int((delay_s + 0.05) * rate), None)
    assert quality_db(played[whole], ideal[whole]) > MIN_QUALITY_DB[quality]
    assert not played[: max(int((delay_s - 0.02) * rate), 0)].any()


def test_a_denoiser_at_48_khz_agrees_with_resampled_files() -> None:
    """Equal to files up to rounding, with the filters of files."""
    with AudioReader(noisy_path()) as file:
        small = np.concatenate(list(file))[: 16000 * 2]
    wide = resample(small, 16000, 48000)
    compiled = pulse.stream(str(model_path()), pulse=160)
    with runs(compiled, block=480, device=VirtualDevice(rate_hz=48000), quality="best") as (host, live):
        played, delay = host.run(wide), live.delay.frames
    model = compiled.model.typed
    (name,) = (port.name for port in compiled.outputs if port.is_sound)
    offline = model.run({"audio": resample(wide, 48000, 16000).T})[name].T
    expected = resample(offline, 16000, 48000)[: len(played) - delay]
    output = played[delay:]
    assert quality_db(output[2400:], expected[2400:]) > 120
    lags = range(-5, 6)
    scores = [np.sum(output[2400:-2400] * expected[2400 + lag : len(expected) - 2400 + lag]) for lag in lags]
    assert lags[int(np.argmax(scores))] == 0


def resample(x: Array, rate_in: int, rate_out: int) -> Array:
    resampler = AudioResampler(rate_in, rate_out)
    return np.concatenate([resampler.process(x), resampler.flush()])


@pytest.mark.parametrize("rate", [44100, 48000])
def test_streams_are_resampled_alike(rate: int) -> None:
    """Two channels with the same signal stay bit-identical."""
    x = tones(np.arange(rate // 2 // 50 * 50) / rate).astype(np.float32)
    device = VirtualDevice(inputs=2, outputs=2, rate_hz=rate)
    with runs(cached_program(), block=50, device=device, channels="each") as (host, _):
        played = host.run(np.stack([x, x], 1))
    np.testing.assert_array_equal(played[:, 0], played[:, 1])
    assert np.abs(played).max() > 0.5


def test_the_number_of_pulses_follows_from_the_rates() -> None:
    """After any number of blocks the counts of pulses follow from the rates."""
    with runs(cached_program(), block=441, device=VirtualDevice(rate_hz=44100)) as (host, live):
        host.run(np.zeros(44100 * 10, np.float32))
        host.advance(0.02)
        pipeline = live.pipeline
        pulses = live.statistics().counters.pulses
        frames_in = (
            44100 * 10 - pipeline.resamplers.inputs[0].delay_frames
        ) * 160 / 441 + pipeline.planned_delay.preroll_model_frames
        assert pulses == int(np.ceil(frames_in)) // 160
