"""Filter banks of overlapping triangles, and the cosine transform that follows them."""

import math
from collections.abc import Callable

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array

MAX_BANDS = 1 << 12
"""More bands are an error: no front has as many, and the matrix would be large."""
SLANEY_STEP_HZ, SLANEY_BREAK_HZ, SLANEY_RATIO = 200 / 3, 1000.0, 6.4 ** (1 / 27)


def kaldi_mel(hz: Array) -> Array:
    """Convert hertz to mel, as Kaldi and TensorFlow do."""
    return 1127 * np.log(1 + hz / 700)


def _slaney(hz: Array) -> Array:
    """Return a straight line up to 1 kHz, then a logarithm."""
    over = np.log(np.maximum(hz, SLANEY_BREAK_HZ) / SLANEY_BREAK_HZ) / math.log(SLANEY_RATIO)
    return np.minimum(hz, SLANEY_BREAK_HZ) / SLANEY_STEP_HZ + over


def _slaney_hz(mel: Array) -> Array:
    at_break = SLANEY_BREAK_HZ / SLANEY_STEP_HZ
    over = SLANEY_BREAK_HZ * SLANEY_RATIO ** np.maximum(mel - at_break, 0)
    return np.where(mel < at_break, mel * SLANEY_STEP_HZ, over)


SCALES: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "htk": (lambda hz: 2595 * np.log10(1 + hz / 700), lambda mel: 700 * (10 ** (mel / 2595) - 1)),
    "slaney": (_slaney, _slaney_hz),
}
"""Hertz to mel, and back."""


def require_band(function: str, low_hz: float, high_hz: float, rate_hz: float) -> None:
    """Raise InputError unless 0 <= low < high <= rate / 2."""
    if not 0 <= low_hz < high_hz <= rate_hz / 2:
        raise InputError(
            f"{function}: a band from {low_hz:g} to {high_hz:g} Hz; it must lie within 0 and {rate_hz / 2:g} Hz, half "
            "of the sample rate"
        )


def mel_triangles(
    bins: int, bands: int, rate_hz: float, low_hz: float, high_hz: float, scale: str, slaney_norm: bool
) -> Array:
    """Return ``[bins, bands]``: triangles in hertz, corners evenly spaced in mel, as in librosa and torchaudio.

    slaney_norm  each of area 1, in hertz
    """
    to_mel, to_hz = SCALES[scale]
    low, high = (float(to_mel(np.array(hz))) for hz in (low_hz, high_hz))
    corners = to_hz(np.linspace(low, high, bands + 2))
    weights = _triangles(corners, np.linspace(0, rate_hz / 2, bins))
    return weights * (2 / (corners[2:] - corners[:-2])) if slaney_norm else weights


def kaldi_triangles(bins: int, bands: int, rate_hz: float, low_hz: float, high_hz: float) -> Array:
    """Return ``[bins, bands]``: triangles in mel, as Kaldi has them; the last bin, half of the rate, counts nowhere."""
    low, high = kaldi_mel(np.array([low_hz, high_hz]))
    corners = low + np.arange(bands + 2) * (high - low) / (bands + 1)
    weights = _triangles(corners, kaldi_mel(np.linspace(0, rate_hz / 2, bins)))
    weights[-1] = 0
    return weights


def _triangles(corners: Array, points: Array) -> Array:
    """Return ``[points, triangles]``: the height of each triangle, from 0 to 1 and back between three corners."""
    rise = (points[:, None] - corners[:-2]) / np.diff(corners)[:-1]
    fall = (corners[2:] - points[:, None]) / np.diff(corners)[1:]
    return np.maximum(0, np.minimum(rise, fall))


def cosines(bands: int, count: int, ortho: bool) -> Array:
    """Return ``[bands, count]``: the first of a cosine transform of type 2, ``ortho`` or twice the sum."""
    angle = np.outer(np.arange(bands) + 0.5, np.arange(count)) * math.pi / bands
    if not ortho:
        return 2 * np.cos(angle)
    scale = np.where(np.arange(count) == 0, math.sqrt(1 / bands), math.sqrt(2 / bands))
    return np.cos(angle) * scale
