# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""The sums of an output of a resampler: frames times coefficients of its filter."""

import numpy as np

from pulse.jit.language.simd import LANES, vfma, vload, vsum, vzero
from pulse.jit.registry import exact_device
from pulse.jit.rows.pointer import Pointer


@exact_device
def filter_at(frames: Pointer, row: Pointer, taps: int, part: float) -> np.float32:
    """Return the products of frames with a row of a filter and with the next one, interpolated by ``part``.

    They are summed from both ends to the middle, where a filter is largest, so that sums stay small for long.
    """
    current, next_row, following = vzero(), row + taps, vzero()
    last_current, last_following = vzero(), vzero()
    half = taps // (2 * LANES) * LANES
    for j in range(0, half, LANES):
        lanes = vload(frames, j)
        current = vfma(lanes, vload(row, j), current)
        following = vfma(lanes, vload(next_row, j), following)
        lanes = vload(frames, taps - LANES - j)
        last_current = vfma(lanes, vload(row, taps - LANES - j), last_current)
        last_following = vfma(lanes, vload(next_row, taps - LANES - j), last_following)
    if 2 * half < taps:
        lanes = vload(frames, half)
        current = vfma(lanes, vload(row, half), current)
        following = vfma(lanes, vload(next_row, half), following)
    current, following = current + last_current, following + last_following
    return vsum(vfma(part, following - current, current))


@exact_device
def filter_by_row(frames: Pointer, row: Pointer, taps: int) -> np.float32:
    """Return the products of frames with one row of a filter, summed as in ``filter_at``."""
    total, last = vzero(), vzero()
    half = taps // (2 * LANES) * LANES
    for j in range(0, half, LANES):
        total = vfma(vload(frames, j), vload(row, j), total)
        last = vfma(vload(frames, taps - LANES - j), vload(row, taps - LANES - j), last)
    if 2 * half < taps:
        total = vfma(vload(frames, half), vload(row, half), total)
    return vsum(total + last)


@exact_device
def filter_one_by_one(frames: Pointer, row: Pointer, taps: int, part: float) -> np.float32:
    """Return the same as ``filter_at``, one product after another.

    Coefficients are interpolated first, and the zeros that pad a row are not multiplied: an infinite sample
    remains infinite, with the sign of its product.
    """
    total = np.float32(0)
    for j in range(taps):
        coefficient = row[j] + part * (row[taps + j] - row[j])
        if coefficient != 0:
            total += coefficient * frames[j]
    return total
