"""Functions of int16 codes as in LiteRT's kernels for 16 bits: linear interpolation between entries of a table.

Sigmoid and tanh: a table of sigmoid(i / 24) in 16 bits, i < 256, is interpolated; tanh(x) = 2 * sigmoid(2x) - 1. The
codes are scaled to 2**17 for 32/3 first, by a 15-bit multiplier. Entries lie above the function by half of the most
that a line between two lies below it: ``step**2 / 16 * abs(second derivative)``. Where the scale of the codes
is a power of two that leaves 3 bits before the point (4 for tanh, too), the functions are of ``fixed_point``.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from pulse.facts import Array
from pulse.tflite import fixed_point
from pulse.tflite.fixed_point import IntegerArray

ENTRIES, POINTS = 256, 24
"""The entries of the table of the sigmoid, and how many of them are between 0 and 1."""
TABLE_ONE = 3 * 4096
"""The argument of the table that means 1."""
MIN_CODE, MAX_CODE = -(1 << 15), (1 << 15) - 1
"""The smallest and the largest 16-bit code."""
INTEGER_BITS = {"sigmoid": (3,), "tanh": (3, 4)}
_SHIFT = 9
"""The bits of a place between two entries."""
TABLE_STEPS = 512
"""The number of entries of a general table, minus one."""
Real: TypeAlias = np.float32 | np.float64


def activation_table(activation: str, scale: float) -> Array:
    """Return the output for each code of the input, from the smallest on: f32 [65536]; kind ``sigmoid`` or ``tanh``."""
    x = np.arange(-(1 << 15), 1 << 15, dtype=np.int64)
    whole = next((bits for bits in INTEGER_BITS[activation] if scale == 2.0 ** (bits - 15)), None)
    if whole is not None:
        return fixed_point.sigmoid(x, whole) if activation == "sigmoid" else fixed_point.tanh(x, whole)
    multiplier, shift = _multiplier(scale)
    scaled = (x * multiplier + ((1 << shift) >> 1)) >> shift
    values = _sigmoid(scaled) if activation == "sigmoid" else _tanh(scaled)
    return values.astype(np.float32)


def _multiplier(scale: float) -> tuple[int, int]:
    factor, shift = scale * TABLE_ONE, 0
    while factor <= MAX_CODE / 2 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    return int(factor), shift


def _interpolate(size: IntegerArray, bits: int, top: int) -> IntegerArray:
    """Return the table between its points, which ``bits`` of ``size`` divide; ``top`` after its end."""
    y = 1 / (1 + np.exp(-np.arange(ENTRIES + 1) / POINTS))
    above = y * (1 - y) * (2 * y - 1) / POINTS**2 / 16
    table = np.minimum(np.rint((1 << 16) * (y + above)).astype(np.int64), (1 << 16) - 1)
    index = np.minimum(size >> bits, ENTRIES - 1)
    rest = size & ((1 << bits) - 1)
    between = (table[index] << bits) + rest * (table[index + 1] - table[index])
    return np.where(index >= ENTRIES - 1, top, between)


def _sigmoid(x: IntegerArray) -> IntegerArray:
    y = _interpolate(np.abs(x), _SHIFT, MAX_CODE << (_SHIFT + 1))
    y = np.where(x >= 0, y + (1 << _SHIFT), (1 << (16 + _SHIFT)) - y + (1 << _SHIFT) - 1)
    return y >> (_SHIFT + 1)


def _tanh(x: IntegerArray) -> IntegerArray:
    bits = _SHIFT - 1
    y = _interpolate(np.abs(x), bits, ((1 << 16) - 1) << bits)
    half = 1 << (14 + _SHIFT)
    rounding = 1 << (_SHIFT - 2)
    return np.where(x >= 0, y - half + rounding, half - y + rounding - 1) >> bits


def interpolate(function: Callable[[Array], Array], in_scale: float, out_scale: float) -> Array:
    """Return a function of all int16 codes by ``interpolated_table`` in f32; infinite values become the ends.

    in_scale, out_scale  of the input and the output
    """
    low, high = (np.float32(in_scale) * np.float32(end) for end in (MIN_CODE, MAX_CODE))
    ends = [np.float32(out_scale) * np.float32(end) for end in (MIN_CODE, MAX_CODE)]

    def values(x: Array) -> Array:
        with np.errstate(all="ignore"):
            y = function(x.astype(np.float64)).astype(np.float32)
        return np.nan_to_num(y, neginf=float(ends[0]), posinf=float(ends[1]))

    return interpolated_table(values, low, high, np.float32(MAX_CODE - MIN_CODE + 1) / (ends[1] - ends[0]))


def interpolated_table(function: Callable[[Array], Array], low: Real, high: Real, unit: Real) -> Array:
    """Return a function of all int16 codes, from the smallest one on, in the type of the ends: f32 [65536].

    Entries are moved by half of the error in the middle between them.

    low, high   the values of the smallest and the largest code
    unit        codes of the output for 1
    """
    two = type(low)(2)
    step = (high - low) / type(low)(TABLE_STEPS)
    x = low + step * np.arange(TABLE_STEPS + 1, dtype=type(low))
    y, middle = function(x) * unit, _round(function(x[:-1] + step / two) * unit)
    error = _round((y[1:] + _round(y[:-1])) / two) - middle
    last = _round(function(np.array([high])) * unit)
    entries = np.append(_round(y[:-1]) - _round(error / two), last)
    entries = np.clip(entries, MIN_CODE, MAX_CODE).astype(np.int64)
    value = np.arange(MIN_CODE, MAX_CODE + 1)
    index = TABLE_STEPS // 2 + (value >> 7)
    slope = entries[index + 1] - entries[index]
    return (entries[index] + ((slope * (value & 127) + 64) >> 7)).astype(np.float32)


def _round(x: Array) -> Array:
    return np.trunc(x + np.copysign(x.dtype.type(0.5), x))
