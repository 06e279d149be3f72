"""The numbers of TensorFlow Lite Micro's audio front end, as its initialisation computes them: in f32, then rounded."""

import numpy as np

from pulse.facts import Array
from pulse.support.record import record

WINDOW_BITS, FILTER_BITS, LOG_BITS = 12, 12, 16
"""The bits after the point of the numbers in the tables of the window, the filters and the logarithm."""
LOG_SEGMENT_BITS = 7
"""The table of the logarithm has 2**7 segments between two powers of two."""
MAX_GAIN = 32767
"""The largest 16-bit gain; larger ones become this."""
INTERVALS = 32
"""The number of powers of two between which a gain is a parabola."""
F = np.float32
"""The type in which the reference computes its tables."""


def round_half_up(x: Array) -> Array:
    """Round to the nearest integer, halves up."""
    return np.floor(np.asarray(x) + F(0.5)).astype(np.int64)


def window_table(size: int) -> Array:
    """Return a Hann window sampled at half-integers, times 2**12."""
    angle = F(F(np.pi) * F(2) / F(size))
    return round_half_up(
        (F(0.5) - F(0.5) * np.cos(angle * (np.arange(size, dtype=F) + F(0.5)))) * F(1 << WINDOW_BITS)
    )


@record
class MelBank:
    """Triangles: each bin adds to one band with its weight, and to the next one with 2**12 minus that weight.

    start, end   the bins that count
    edges        the first bin of each band; band 0 only has the falling half below the first one
    weights      the weight of each bin
    complements  2**12 minus the weight of each bin
    """

    start: int
    end: int
    edges: Array
    weights: Array
    complements: Array


def mel(hz: Array | float) -> Array:
    """Convert hertz to mel in f32, as the reference does."""
    return F(1127) * np.log1p(np.asarray(hz, F) / F(700))


def bank_table(channels: int, low_hz: float, high_hz: float, rate_hz: int, bins: int) -> MelBank:
    """Return the bands, one more than channels."""
    low, high = mel(low_hz), mel(high_hz)
    spacing = F(F(high - low) / F(channels + 1))
    centres = low + spacing * np.arange(1, channels + 2).astype(F)
    step_hz = F(0.5) * F(rate_hz) / F(bins - 1)
    start = int(F(1.5) + F(low_hz) / step_hz)
    position = mel(np.arange(bins, dtype=F) * step_hz)
    ends = np.maximum(start, np.searchsorted(position, centres, "right"))
    edges = np.array([start, *ends])
    end = int(ends[-1])
    band = np.searchsorted(ends, np.arange(start, end), "right")
    below = np.array([low, *centres[:-1]], F)
    weight = (centres[band] - position[start:end]) / (centres[band] - below[band])
    unit = F(1 << FILTER_BITS)
    return MelBank(start, end, edges, round_half_up(weight * unit), round_half_up((F(1) - weight) * unit))


def gain_at(x: Array, input_bits: int, gain_bits: int, strength: float, offset: float) -> Array:
    """Return the gain for a noise estimate, at most 32767."""
    noise = np.asarray(x).astype(F) / F(1 << input_bits)
    gain = F(1 << gain_bits) * np.power(noise + F(offset), F(-strength))
    return np.where(gain > MAX_GAIN, MAX_GAIN, (gain + F(0.5)).astype(np.int64))


def gain_tables(input_bits: int, gain_bits: int, strength: float, offset: float) -> tuple[Array, Array]:
    """Return the gains at 0, 1 and 2; for each number of bits a parabola: value, slope and curvature [3, 33]."""

    def gain(x: Array) -> Array:
        return gain_at(x, input_bits, gain_bits, strength, offset)

    first = np.int64(1) << np.arange(1, INTERVALS, dtype=np.int64)
    last = np.where(first == 1 << (INTERVALS - 1), 2 * first - 1, 2 * first)
    y0, y1, y2 = gain(first), gain(first + (first >> 1)), gain(last)
    slope = 4 * (y1 - y0) - (y2 - y0)
    parabolas = np.zeros((3, INTERVALS + 1), np.int64)
    parabolas[:, 2:] = y0, wrap_int16(slope), wrap_int16(y2 - y0 - slope)
    return gain(np.arange(3)), parabolas


def wrap_int16(x: Array) -> Array:
    """Wrap to a 16-bit integer."""
    return x.astype(np.int16).astype(np.int64)


def log_table() -> Array:
    """Return ``log2(1 + t) - t`` times 2**16, for t in steps of 1/128, with one guard entry."""
    t = np.arange((1 << LOG_SEGMENT_BITS) + 1) / (1 << LOG_SEGMENT_BITS)
    return np.append(np.floor((np.log2(1 + t) - t) * (1 << LOG_BITS) + 0.5), 0).astype(np.int64)


def cos_sin_table(phase: Array) -> tuple[Array, Array]:
    """Return cosines and sines times 2**15 - 1."""
    real, imaginary = (np.floor(0.5 + 32767 * part(phase)).astype(np.int64) for part in (np.cos, np.sin))
    return real, imaginary
