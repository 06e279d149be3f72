"""Blocks of a product: some rows times one panel of packed weights."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.simd import (
    LANES,
    Vector,
    in_pairs,
    vfma,
    vload,
    vload_first,
    vload_part,
    vload_second,
    vsplat,
    vstore,
    vstore_eights,
    vstore_part,
    vzero,
)
from pulse.jit.registers import HAS_REGISTERS_FOR_EIGHT
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul.scales import Scales, begin_sum, end_sum, offset_scales

HALF, PANEL = LANES // 2, 2 * LANES
"""The columns of half a vector, and of a panel of packed weights."""
NARROW, FIRST, SECOND = range(3)
"""What a block of 16 columns multiplies: a narrow panel, or the first or second half of a wide one."""


@device
def panel_width(columns: int) -> int:
    """Return the width of the next panel of packed weights: 32, or 16 if that is enough."""
    return PANEL if columns > LANES else LANES


def pack_product(w: NDArray[Any]) -> NDArray[Any]:
    """Pack weights [R, N] of any type in the order that ``product`` reads: panels of columns, each row by row.

    The panels are 32 columns wide; the last one as ``panel_width`` says. Missing columns are zeros, but the last eight
    of a panel with up to 24 columns are its first eight once more. Rows of 32 columns are ``in_pairs``.
    """
    rows, columns = w.shape
    panels: list[NDArray[Any]] = []
    first = 0
    while first < columns:
        width = panel_width(columns - first)
        part = w[:, first : first + width]
        panel = np.zeros((rows, width), w.dtype)
        panel[:, : part.shape[1]] = part
        if LANES < part.shape[1] <= LANES + HALF:
            panel[:, -HALF:] = part[:, :HALF]
        panels.append((in_pairs(panel) if width == PANEL else panel).ravel())
        first += width
    return np.concatenate(panels) if panels else np.zeros(0, w.dtype)


@device
def initial_sum(bias: Vector, y: Pointer, rest: int, accumulate: int) -> Vector:
    """Return the initial sum: the bias, plus the value in y if it accumulates."""
    if accumulate:
        return bias + vload_part(y, 0, rest)
    return bias


@device
def store_columns(y: Pointer, rest: int, v: Vector) -> None:
    """Write the first ``rest`` of 16 columns; all without a mask, since loads must wait for a masked store to end."""
    if rest >= LANES:
        vstore(y, 0, v)
    elif rest == HALF:
        vstore_eights(y, 0, 0, 1, v, 0)
    else:
        vstore_part(y, 0, rest, v)


@device
def multiply_row_wide(
    x: Pointer,
    taps: Pointer,
    T: int,
    K: int,
    w: Pointer,
    bias: Pointer,
    scales: Scales,
    y: Pointer,
    rest: int,
    accumulate: int,
) -> None:
    """Multiply one row by a panel of 32 columns, of which ``rest`` are stored."""
    first0 = initial_sum(vload(bias, 0), y, LANES, accumulate)
    first1 = initial_sum(vload_part(bias + LANES, 0, rest - LANES), y + LANES, rest - LANES, accumulate)
    low, high = begin_sum(first0, scales), begin_sum(first1, scales)
    low1, high1, low2, high2, low3, high3 = vzero(), vzero(), vzero(), vzero(), vzero(), vzero()
    for t in range(T):
        p = x + taps[t]
        k = 0
        while k + 4 <= K:
            a, b, c, d = vsplat(p[k]), vsplat(p[k + 1]), vsplat(p[k + 2]), vsplat(p[k + 3])
            low, high = vfma(a, vload_first(w, 0), low), vfma(a, vload_second(w, 0), high)
            low1, high1 = vfma(b, vload_first(w, 32), low1), vfma(b, vload_second(w, 32), high1)
            low2, high2 = vfma(c, vload_first(w, 64), low2), vfma(c, vload_second(w, 64), high2)
            low3, high3 = vfma(d, vload_first(w, 96), low3), vfma(d, vload_second(w, 96), high3)
            w = w + 4 * PANEL
            k += 4
        for _ in range(K & 3):
            a = vsplat(p[k])
            low, high = vfma(a, vload_first(w, 0), low), vfma(a, vload_second(w, 0), high)
            w = w + PANEL
            k += 1
    low = end_sum((low + low1) + (low2 + low3), first0, scales, 0, LANES)
    high = end_sum((high + high1) + (high2 + high3), first1, scales, LANES, rest - LANES)
    vstore(y, 0, low)
    store_columns(y + LANES, rest - LANES, high)


@device
def multiply_row_narrow(
    x: Pointer,
    taps: Pointer,
    T: int,
    K: int,
    w: Pointer,
    bias: Pointer,
    scales: Scales,
    y: Pointer,
    rest: int,
    accumulate: int,
) -> None:
    """Multiply one row by a panel of 16 columns, of which ``rest`` are stored."""
    first = initial_sum(vload_part(bias, 0, rest), y, rest, accumulate)
    sum0 = begin_sum(first, scales)
    sum1, sum2, sum3 = vzero(), vzero(), vzero()
    for t in range(T):
        p = x + taps[t]
        k = 0
        while k + 4 <= K:
            sum0 = vfma(p[k], vload(w, 0), sum0)
            sum1 = vfma(p[k + 1], vload(w, 16), sum1)
            sum2 = vfma(p[k + 2], vload(w, 32), sum2)
            sum3 = vfma(p[k + 3], vload(w, 48), sum3)
            w = w + 4 * LANES
            k += 4
        for _ in range(K & 3):
            sum0 = vfma(p[k], vload(w, 0), sum0)
            w = w + LANES
            k += 1
    total = end_sum((sum0 + sum1) + (sum2 + sum3), first, scales, 0, rest)
    store_columns(y, rest, total)


@device
def multiply_two_rows_wide(
    x0: Pointer,
    x1: Pointer,
    taps: Pointer,
    T: int,
    K: int,
    w: Pointer,
    bias: Pointer,
    scales: Scales,
    y0: Pointer,
    y1: Pointer,
    rest: int,
    accumulate: int,
) -> None:
    """Multiply two rows by a panel of 32 columns, of which ``rest`` are stored."""
    low, high, more = vload(bias, 0), vload_part(bias + LANES, 0, rest - LANES), rest - LANES
    left0, right0 = initial_sum(low, y0, LANES, accumulate), initial_sum(high, y0 + LANES, more, accumulate)
    left1, right1 = initial_sum(low, y1, LANES, accumulate), initial_sum(high, y1 + LANES, more, accumulate)
    low0, high0 = begin_sum(left0, scales), begin_sum(right0, scales)
    low1, high1 = begin_sum(left1, scales), begin_sum(right1, scales)
    low2, high2, low3, high3 = vzero(), vzero(), vzero(), vzero()
    for t in range(T):
        tap = taps[t]
        p0, p1, k = x0 + tap, x1 + tap, 0
        while k + 2 <= K:
            left, right = vload_first(w, 0), vload_second(w, 0)
            a, b, c, d = vsplat(p0[k]), vsplat(p1[k]), vsplat(p0[k + 1]), vsplat(p1[k + 1])
            low0, high0 = vfma(a, left, low0), vfma(a, right, high0)
            low1, high1 = vfma(b, left, low1), vfma(b, right, high1)
            left, right = vload_first(w, PANEL), vload_second(w, PANEL)
            low2, high2 = vfma(c, left, low2), vfma(c, right, high2)
            low3, high3 = vfma(d, left, low3), vfma(d, right, high3)
            w = w + 2 * PANEL
            k += 2
        if k < K:
            left, right = vload_first(w, 0), vload_second(w, 0)
            a, b = vsplat(p0[k]), vsplat(p1[k])
            low0, high0 = vfma(a, left, low0), vfma(a, right, high0)
            low1, high1 = vfma(b, left, low1), vfma(b, right, high1)
            w = w + PANEL
    vstore(y0, 0, end_sum(low0 + low2, left0, scales, 0, LANES))
    vstore(y1, 0, end_sum(low1 + low3, left1, scales, 0, LANES))
    store_columns(y0 + LANES, more, end_sum(high0 + high2, right0, scales, LANES, more))
    store_columns(y1 + LANES, more, end_sum(high1 + high3, right1, scales, LANES, more))


@device
def multiply_four_rows_wide(
    x0: Pointer,
    x1: Pointer,
    x2: Pointer,
    x3: Pointer,
    taps: Pointer,
    T: int,
    K: int,
    w: Pointer,
    bias: Pointer,
    scales: Scales,
    y0: Pointer,
    y1: Pointer,
    y2: Pointer,
    y3: Pointer,
    rest: int,
    accumulate: int,
) -> None:
    """Multiply four rows by a panel of 32 columns, of which ``rest`` are stored."""
    low, high, more = vload(bias, 0), vload_part(bias + LANES, 0, rest - LANES), rest - LANES
    left0, right0 = initial_sum(low, y0, LANES, accumulate), initial_sum(high, y0 + LANES, more, accumulate)
    left1, right1 = initial_sum(low, y1, LANES, accumulate), initial_sum(high, y1 + LANES, more, accumulate)
    left2, right2 = initial_sum(low, y2, LANES, accumulate), initial_sum(high, y2 + LANES, more, accumulate)
    left3, right3 = initial_sum(low, y3, LANES, accumulate), initial_sum(high, y3 + LANES, more, accumulate)
    low0, high0 = begin_sum(left0, scales), begin_sum(right0, scales)
    low1, high1 = begin_sum(left1, scales), begin_sum(right1, scales)
    low2, high2 = begin_sum(left2, scales), begin_sum(right2, scales)
    low3, high3 = begin_sum(left3, scales), begin_sum(right3, scales)
    for t in range(T):
        tap = taps[t]
        p0, p1, p2, p3 = x0 + tap, x1 + tap, x2 + tap, x3 + tap
        for k in range(K):
            left, right = vload_first(w, 0), vload_second(w, 0)
            a, b, c, d = vsplat(p0[k]), vsplat(p1[k]), vsplat(p2[k]), vsplat(p3[k])
            low0, high0 = vfma(a, left, low0), vfma(a, right, high0)
            low1, high1 = vfma(b, left, low1), vfma(b, right, high1)
            low2, high2 = vfma(c, left, low2), vfma(c, right, high2)
            low3, high3 = vfma(d, left, low3), vfma(d, right, high3)
            w = w + PANEL
    vstore(y0, 0, end_sum(low0, left0, scales, 0, LANES))
    vstore(y1, 0, end_sum(low1, left1, scales, 0, LANES))
    vstore(y2, 0, end_sum(low2, left2, scales, 0, LANES))
    vstore(y3, 0, end_sum(low3, left3, scales, 0, LANES))
    store_columns(y0 + LANES, more, end_sum(high0, right0, scales, LANES, more))
    store_columns(y1 + LANES, more, end_sum(high1, right1, scales, LANES, more))
    store_columns(y2 + LANES, more, end_sum(high2, right2, scales, LANES, more))
    store_columns(y3 + LANES, more, end_sum(high3, right3, scales, LANES, more))


@device
def load_columns(w: Pointer, part: int) -> Vector:
    """Return 16 columns of a row of a panel: those of a narrow one, or the first or second ones of a wide one."""
    if part == FIRST:
        return vload_first(w, 0)
    if part == SECOND:
        return vload_second(w, 0)
    return vload(w, 0)


@device
def multiply_four_rows_narrow(
    x0: Pointer,
    x1: Pointer,
    x2: Pointer,
    x3: Pointer,
    taps: Pointer,
    T: int,
    K: int,
    w: Pointer,
    part: int,
    bias: Pointer,
    scales: Scales,
    y0: Pointer,
    y1: Pointer,
    y2: Pointer,
    y3: Pointer,
    rest: int,
    accumulate: int,
) -> None:
    """Multiply four rows by 16 columns, of which ``rest`` are stored: a narrow panel, or a part of a wide one."""
    b, step = vload_part(bias, 0, rest), LANES if part == NARROW else PANEL
    first0, first1 = initial_sum(b, y0, rest, accumulate), initial_sum(b, y1, rest, accumulate)
    first2, first3 = initial_sum(b, y2, rest, accumulate), initial_sum(b, y3, rest, accumulate)
    sum0, sum1 = begin_sum(first0, scales), begin_sum(first1, scales)
    sum2, sum3 = begin_sum(first2, scales), begin_sum(first3, scales)
    for t in range(T):
        tap = taps[t]
        p0, p1, p2, p3 = x0 + tap, x1 + tap, x2 + tap, x3 + tap
        for k in range(K):
            column = load_columns(w, part)
            sum0, sum1 = vfma(p0[k], column, sum0), vfma(p1[k], column, sum1)
            sum2, sum3 = vfma(p2[k], column, sum2), vfma(p3[k], column, sum3)
            w = w + step
    store_columns(y0, rest, end_sum(sum0, first0, scales, 0, rest))
    store_columns(y1, rest, end_sum(sum1, first1, scales, 0, rest))
    store_columns(y2, rest, end_sum(sum2, first2, scales, 0, rest))
    store_columns(y3, rest, end_sum(sum3, first3, scales, 0, rest))


@device
def multiply_four_rows(
    x0: Pointer,
    x1: Pointer,
    x2: Pointer,
    x3: Pointer,
    taps: Pointer,
    T: int,
    K: int,
    w: Pointer,
    bias: Pointer,
    scales: Scales,
    y0: Pointer,
    y1: Pointer,
    y2: Pointer,
    y3: Pointer,
    rest: int,
    accumulate: int,
) -> None:
    """Multiply four rows by the next panel, of which ``rest`` columns are stored.

    A wide one needs 32 registers; with fewer, 16 of its columns are multiplied at a time.
    """
    if rest <= LANES:
        multiply_four_rows_narrow(
            x0, x1, x2, x3, taps, T, K, w, NARROW, bias, scales, y0, y1, y2, y3, rest, accumulate
        )
    elif HAS_REGISTERS_FOR_EIGHT:
        multiply_four_rows_wide(x0, x1, x2, x3, taps, T, K, w, bias, scales, y0, y1, y2, y3, rest, accumulate)
    else:
        multiply_four_rows_narrow(
            x0, x1, x2, x3, taps, T, K, w, FIRST, bias, scales, y0, y1, y2, y3, LANES, accumulate
        )
        multiply_four_rows_narrow(
            x0, x1, x2, x3, taps, T, K, w, SECOND, bias + LANES, offset_scales(scales, LANES),
            y0 + LANES, y1 + LANES, y2 + LANES, y3 + LANES, rest - LANES, accumulate,
        )  # fmt: skip
