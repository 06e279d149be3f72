"""The pass and stop bands of resampling filters, measured on their tables."""

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.facts import Array
from streaming.native.filters import QUALITIES, Filter, design

BANDS = {
    "low": (71, 0.71, 0.82),
    "medium": (90, 0.81, 0.89),
    "high": (120, 0.91, 0.945),
    "best": (145, 0.935, 0.964),
}
"""Stop band in dB; where the pass band ends; up to where less than 3 dB are lost."""
RATES = [(48000, 16000), (16000, 48000), (44100, 48000), (48000, 44100), (44100, 16000), (48000, 48000)]
ODD_RATES = [(44101, 16000), (16000, 44101)]


def response(resampling_filter: Filter, rate_in: int, rate_out: int) -> tuple[Array, Array]:
    """Frequencies as parts of the lower Nyquist frequency, and the gain at each."""
    curve = resampling_filter.table[:-1][::-1].T.ravel().astype(np.float64)
    gains = np.abs(np.fft.rfft(curve, 8 * len(curve))) / resampling_filter.phases
    cycles = np.arange(len(gains)) * resampling_filter.phases / (8 * len(curve))
    return cycles * 2 * rate_in / min(rate_in, rate_out), gains


@pytest.mark.parametrize(
    ("rate_in", "rate_out", "quality", "tunable"),
    [
        *((*rates, quality, True) for rates in (*RATES, *ODD_RATES) for quality in QUALITIES),
        *((*rates, "best", False) for rates in (*RATES, *ODD_RATES) if rates != (48000, 48000)),
    ],
)
def test_the_bands_are_as_documented(rate_in: int, rate_out: int, quality: str, tunable: bool) -> None:
    stop_db, passed, cutoff = BANDS[quality]
    designed = design(rate_in, rate_out, quality, tunable)
    if not tunable:
        stop_db -= 0.5  # fewer rows are rounded to f32
    parts, gains = response(designed, rate_in, rate_out)
    assert 20 * np.log10(gains[parts >= 1].max()) < -stop_db
    assert 20 * np.log10(np.abs(gains[parts <= passed] - 1).max()) < -stop_db + 1
    assert 20 * np.log10(gains[parts <= cutoff].min()) > -3


@pytest.mark.parametrize(("quality", "delay_ms"), [("low", 1), ("medium", 2), ("high", 6), ("best", 10)])
@pytest.mark.parametrize("rate", [44100, 48000])
def test_the_delay_is_as_documented(quality: str, delay_ms: int, rate: int) -> None:
    assert design(rate, 16000, quality).half_frames / rate * 1e3 == pytest.approx(delay_ms, abs=0.03)
    assert design(16000, rate, quality).half_frames / 16 == delay_ms


@pytest.mark.parametrize(("rate_in", "rate_out"), [*RATES, (25600, 100), (100, 25600)])
def test_rows_pass_a_constant_as_it_is_and_lie_on_cache_lines(rate_in: int, rate_out: int) -> None:
    designed = design(rate_in, rate_out, "medium")
    np.testing.assert_allclose(designed.table.sum(axis=1, dtype=np.float64), 1, atol=1e-6)
    assert designed.taps % 16 == 0
    assert designed.table.ctypes.data % 64 == 0
    with pytest.raises(ValueError, match="read-only"):
        designed.table[0, 0] = 1


def test_the_last_row_is_the_first_one_frame_later() -> None:
    table = design(48000, 44100, "low").table
    np.testing.assert_allclose(table[-1, 1:], table[0, :-1], atol=1e-4)


def test_resamplers_of_the_same_rates_share_a_filter() -> None:
    assert design(48000, 16000, "low") is design(48000, 16000, "low")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 16000, "low"), "must be positive, got 0 Hz"),
        ((100, 48000, "low"), "differ by more than a factor of 256"),
        ((48000, 16000, "highest"), "'highest' .did you mean high.*; choose one of low, medium, high, best"),
    ],
)
def test_invalid_filter_arguments_are_refused(arguments: tuple[int, int, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        design(*arguments)
