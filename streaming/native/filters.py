"""Filters of resamplers: a windowed sinc, tabulated between two frames of the input."""

from functools import lru_cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

from pulse.errors import InputError
from pulse.jit.language.simd import LANES
from pulse.support.mapping import aligned_bytes
from pulse.support.naming import require_name
from pulse.support.record import record

MAX_RATIO = 256
"""Maximum ratio of two rates; a larger one is refused, because its filter would be too long."""


@record
class Quality:
    """The quality of a filter, in frames of the lower of the two rates.

    half_frames  frames on either side of an output: the delay
    stop_db      the attenuation for Kaiser's formula
    phases       positions between two frames with separate coefficients
    """

    half_frames: int
    stop_db: float
    phases: int


DEFAULT_QUALITY = "medium"
"""The quality of servers and of built libraries; live runs may choose another, and files have ``best``."""
QUALITIES = {
    "low": Quality(16, 73, 128),
    "medium": Quality(32, 92, 256),
    "high": Quality(96, 128, 1024),
    "best": Quality(160, 150, 4096),
}
"""
The qualities by name, as measured, including interpolation errors; bands are fractions of the lower Nyquist frequency.
The stop band begins there, so nothing is aliased. In the pass band, the error of a tone is that of the stop band. The
delay is that of one resampler whose lower rate is 16 kHz.

========  ======  =========  =========  ===========  ========
name      delay   stop band  pass band  -0.1 dB at   -3 dB at
========  ======  =========  =========  ===========  ========
low       1 ms     -70 dB    71 %       74 %         82 %
medium    2 ms     -90 dB    81 %       84 %         89 %
high      6 ms    -120 dB    91 %       93 %         95 %
best      10 ms   -145 dB    93 %       95 %         96 %
========  ======  =========  =========  ===========  ========
"""


@record(eq=False)
class Filter:
    """The filter of a resampler.

    half_frames  input frames after the time of an output that it needs
    table        [phases + 1, taps] f32, read only, rows on cache lines; taps are a multiple of 16

    An output at the input time ``i + p/phases`` is the product of row p with the frames up to ``i + half_frames``.
    The last row is the first one, a frame later. Every row sums to 1.
    """

    half_frames: int
    table: NDArray[np.float32]

    @property
    def phases(self) -> int:
        """The number of rows between two frames."""
        return len(self.table) - 1

    @property
    def taps(self) -> int:
        """The number of frames under the filter."""
        return self.table.shape[1]


def require_quality(rate_in_hz: int, rate_out_hz: int, quality: str) -> Quality:
    """Return the quality of this name.

    Raises InputError: it is unknown, or the rates are not positive or more than ``MAX_RATIO`` times apart
    """
    if min(rate_in_hz, rate_out_hz) < 1:
        raise InputError(f"sample rates must be positive, got {rate_in_hz} Hz and {rate_out_hz} Hz")
    if max(rate_in_hz, rate_out_hz) > MAX_RATIO * min(rate_in_hz, rate_out_hz):
        raise InputError(
            f"{rate_in_hz} Hz and {rate_out_hz} Hz differ by more than a factor of {MAX_RATIO}; choose closer rates"
        )
    return QUALITIES[require_name("resampling quality", quality, QUALITIES, InputError)]


@lru_cache(maxsize=16)
def design(rate_in_hz: int, rate_out_hz: int, quality: str, tunable: bool = True) -> Filter:
    """Return the filter for two rates; resamplers of the same rates share it.

    tunable  whether the ratio may change; if not, a row for each position of an output is enough
    Raises   InputError: an unknown quality, or rates that ``require_quality`` refuses
    Source   J. F. Kaiser, Nonrecursive digital filter design using the I0-sinh window function, 1974

    Coefficients between rows are interpolated linearly. This adds images of a tone at multiples of ``phases`` times
    the lower rate, each at least ``(2 * phases)**2`` times smaller than the tone: below the stop band.
    """
    settings = require_quality(rate_in_hz, rate_out_hz, quality)
    frames = max(rate_in_hz / rate_out_hz, 1.0)  # input frames for one of the lower rate
    half = int(np.ceil(settings.half_frames * frames))
    taps = -(-2 * half // LANES) * LANES
    phases = int(np.ceil(settings.phases / frames))
    if not tunable:
        phases = min(phases, rate_out_hz // gcd(rate_in_hz, rate_out_hz))
    distances = np.arange(half - taps + 1, half + 1) - np.arange(phases + 1)[:, None] / phases
    rows = _kaiser(distances / half, settings.stop_db) * np.sinc(
        (1 - (settings.stop_db - 7.95) / (14.36 * (2 * half / frames))) / frames * distances
    )
    table = aligned_bytes(4 * rows.size).view(np.float32).reshape(rows.shape)
    table[:] = rows / rows.sum(axis=1, keepdims=True)
    table.flags.writeable = False
    return Filter(half, table)


def _kaiser(x: NDArray[np.float64], stop_db: float) -> NDArray[np.float64]:
    """Return the window from -1 to 1, 0 outside."""
    beta = 0.1102 * (stop_db - 8.7)
    return np.where(np.abs(x) <= 1, np.i0(beta * np.sqrt(np.maximum(1 - x * x, 0))) / np.i0(beta), 0)
