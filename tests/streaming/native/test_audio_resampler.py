"""Resampled sound has the exact length, stays where it is in time, and does not depend on the blocks."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.errors import InputError
from pulse.facts import Array
from streaming.native.filters import QUALITIES
from streaming.native.resample import AudioResampler, NativeResampler, resampled_length
from tests.noise import normal_noise

RATES = st.sampled_from([8000, 11025, 16000, 22050, 44100, 48000])


def resample(x: Array, rate_in: int, rate_out: int, cuts: Any = (), quality: str = "low") -> Array:
    resampler = AudioResampler(rate_in, rate_out, x.shape[1], quality)
    pieces = [resampler.process(block) for block in np.split(x, sorted(cuts))]
    return np.concatenate([*pieces, resampler.flush()])


@settings(max_examples=40, deadline=None)
@given(RATES, RATES, st.integers(0, 5000), st.integers(1, 2), st.lists(st.integers(0, 5000), max_size=8))
def test_any_blocks_give_the_same_samples_of_the_exact_length(
    rate_in: int, rate_out: int, length: int, channels: int, cuts: list[int]
) -> None:
    x = normal_noise(length, channels, seed=length)
    whole = resample(x, rate_in, rate_out)
    assert whole.shape == (resampled_length(length, rate_in, rate_out), channels)
    cut = resample(x, rate_in, rate_out, [min(at, length) for at in cuts])
    np.testing.assert_array_equal(cut, whole)


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize(
    ("rate_in", "rate_out"), [(44100, 16000), (16000, 44100), (48000, 16000), (16000, 48000)]
)
def test_a_tone_stays_where_it_is(rate_in: int, rate_out: int, quality: str) -> None:
    def tone(rate):
        return np.sin(2 * np.pi * 440 * np.arange(rate // 2) / rate + 0.3)[:, None].astype(np.float32)

    output = resample(tone(rate_in), rate_in, rate_out, range(0, rate_in // 2, 441), quality)
    middle = slice(rate_out // 20, -rate_out // 20)
    np.testing.assert_allclose(output[middle], tone(rate_out)[middle], atol=1e-3)


@pytest.mark.parametrize("tunable", [False, True], ids=["fixed", "tunable"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    ("rate_in", "rate_out"),
    [(16000, 44100), (16000, 48000), (48000, 16000), (44101, 16000), (16000, 44101), (44100, 16000)],
)
def test_a_nonfinite_sample_reaches_as_far_as_the_filter(
    rate_in: int, rate_out: int, value: float, tunable: bool
) -> None:
    """An infinite one is infinite there, and never NaN."""
    resampler = NativeResampler(rate_in, rate_out, "best", tunable=tunable)
    x = normal_noise(4000)
    x[2000] = value
    output = resampler.process(x)
    x[2000] = 0
    resampler.reset()
    expected = resampler.process(x)
    distances = np.abs(np.arange(len(output)) * rate_in / rate_out - 2000)
    reached = distances < resampler.delay_frames
    same = np.isnan(output) if np.isnan(value) else np.isinf(output)
    assert same[reached].all()
    assert output[np.argmin(distances)] == pytest.approx(value, nan_ok=True)
    beyond = distances > resampler.delay_frames
    np.testing.assert_allclose(output[beyond], expected[beyond], atol=2e-6)


def test_there_and_back_is_aligned_to_the_sample() -> None:
    x = np.zeros((44100, 1), np.float32)
    x[[5000, 20000, 44000]] = 1
    back = resample(resample(x, 44100, 16000, range(0, 44100, 1000)), 16000, 44100)
    assert back.shape == x.shape
    for at in (5000, 20000, 44000):
        assert at - 50 + np.argmax(back[at - 50 : at + 50]) == at


def test_equal_rates_change_nothing() -> None:
    x = normal_noise(1000, 2)
    np.testing.assert_array_equal(resample(x, 16000, 16000, [3, 500]), x)


def test_flush_completes_the_length_and_resets() -> None:
    resampler = AudioResampler(48000, 16000)
    x = normal_noise(4800, 1)
    first = np.concatenate([resampler.process(x), resampler.flush(1700)])
    second = np.concatenate([resampler.process(x), resampler.flush()])
    assert (len(first), len(second)) == (1700, 1600)
    np.testing.assert_allclose(first[:1600], second, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 16000), "must be positive, got 0 Hz"),
        ((100, 48000), "differ by more than a factor of 256"),
        (
            (48000, 16000, 1, "sinc_best"),
            "'sinc_best' .did you mean best.*; choose one of low, medium, high, best",
        ),
    ],
)
def test_bad_rates_and_qualities_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AudioResampler(*arguments)
