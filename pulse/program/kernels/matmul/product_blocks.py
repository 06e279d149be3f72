"""Blocks of a product: some rows times one panel of packed weights."""

from operator import add, getitem
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.dispatch import outline
from pulse.jit.language.simd import (
    LANES,
    Vector,
    in_pairs,
    vfma,
    vfma_half,
    vindex,
    vload,
    vload_first,
    vload_part,
    vload_second,
    vlt,
    vrotate_by_eight,
    vselect,
    vsplat,
    vstore,
    vstore_eights,
    vstore_part,
    vzero,
)
from pulse.jit.language.tuples import copies, each
from pulse.jit.registers import HAS_AVX512, HAS_FULL_WIDTH_AVX512
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul.scales import Scales, begin_sum, end_sum, offset_scales
from pulse.program.kernels.row_tuples import Pointers, Three, Vectors, element

HALF, PANEL = LANES // 2, 2 * LANES
"""The columns of half a vector, and of a panel of packed weights."""
NARROW, FIRST, SECOND = range(3)
"""What a block of 16 columns multiplies: a narrow panel, or the first or second half of a wide one."""
Panel: TypeAlias = tuple[Pointer, int, int, Pointer, Pointer, Scales, int, int]
"""The taps, their number and their inputs; a panel's weights, bias, scales, columns, and whether y is added."""


@device
def panel_width(columns: int) -> int:
    """Return the width of the next panel of packed weights: 32, or 16 if that is enough."""
    return PANEL if columns > LANES else LANES


def pack_product(w: NDArray[Any]) -> NDArray[Any]:
    """Pack weights [R, N] of any type in the order that ``product`` reads: panels of columns, each row by row.

    The panels are 32 columns wide; the last one as ``panel_width`` says. Missing columns are zeros. Rows of 32 columns
    are ``in_pairs``.
    """
    rows, columns = w.shape
    panels: list[NDArray[Any]] = []
    first = 0
    while first < columns:
        width = panel_width(columns - first)
        part = w[:, first : first + width]
        panel = np.zeros((rows, width), w.dtype)
        panel[:, : part.shape[1]] = part
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
def initial_wide_sums(bias: Pointer, y: Pointers, rest: int, accumulate: int) -> tuple[Vectors, Vectors]:
    """Return the initial sums of rows of a wide panel: of its first and its second half."""
    half, beyond = each(add, y, LANES), rest - LANES
    left, right = vload(bias, 0), vload_part(bias + LANES, 0, beyond)
    return each(initial_sum, left, y, LANES, accumulate), each(initial_sum, right, half, beyond, accumulate)


@device
def store_columns(y: Pointer, rest: int, v: Vector) -> None:
    """Write the first ``rest`` of 16 columns; all, which is tried first, or half of them without a mask."""
    if rest >= LANES:
        vstore(y, 0, v)
    elif rest == HALF:
        vstore_eights(y, 0, 0, 1, v, 0)
    else:
        vstore_part(y, 0, rest, v)


@device
def store_wide(
    y: Pointer, low: Vector, high: Vector, first: Vector, second: Vector, scales: Scales, rest: int
) -> None:
    """Store 32 columns of one row, of which ``rest`` exist; ``first`` and ``second`` are their initial sums."""
    vstore(y, 0, end_sum(low, first, scales, 0, LANES))
    store_columns(y + LANES, rest - LANES, end_sum(high, second, scales, LANES, rest - LANES))


@device
def multiply_row_wide(x: Pointer, y: Pointer, panel: Panel) -> None:
    """Multiply one row by a panel of 32 columns, of which ``rest`` are stored."""
    taps, T, K, w, bias, scales, rest, accumulate = panel
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
def multiply_row_narrow(x: Pointer, y: Pointer, panel: Panel) -> None:
    """Multiply one row by a panel of 16 columns, of which ``rest`` are stored."""
    taps, T, K, w, bias, scales, rest, accumulate = panel
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
def add_inputs_wide(low: Vectors, high: Vectors, p: Pointers, k: int, w: Pointer) -> tuple[Vectors, Vectors]:
    """Add the products of input k of rows with the 32 columns at w."""
    inputs = each(element, p, k)
    return each(vfma, inputs, vload_first(w, 0), low), each(vfma, inputs, vload_second(w, 0), high)


@device
def multiply_two_rows_wide(x: Pointers, y: Pointers, panel: Panel) -> None:
    """Multiply two rows by a panel of 32 columns, of which ``rest`` are stored."""
    taps, T, K, w, bias, scales, rest, accumulate = panel
    left, right = initial_wide_sums(bias, y, rest, accumulate)
    low, high, zeros = each(begin_sum, left, scales), each(begin_sum, right, scales), copies(vzero(), y)
    low1, high1 = zeros, zeros
    for t in range(T):
        p, k = each(add, x, taps[t]), 0
        while k + 2 <= K:
            low, high = add_inputs_wide(low, high, p, k, w)
            low1, high1 = add_inputs_wide(low1, high1, p, k + 1, w + PANEL)
            w = w + 2 * PANEL
            k += 2
        if k < K:
            low, high = add_inputs_wide(low, high, p, k, w)
            w = w + PANEL
    each(store_wide, y, each(add, low, low1), each(add, high, high1), left, right, scales, rest)


@device
def multiply_rows_wide(x: Pointers, y: Pointers, panel: Panel) -> None:
    """Multiply four or eight rows by a panel of 32 columns, of which ``rest`` are stored."""
    taps, T, K, w, bias, scales, rest, accumulate = panel
    left, right = initial_wide_sums(bias, y, rest, accumulate)
    low, high = each(begin_sum, left, scales), each(begin_sum, right, scales)
    for t in range(T):
        p = each(add, x, taps[t])
        for k in range(K):
            low, high = add_inputs_wide(low, high, p, k, w)
            w = w + PANEL
    each(store_wide, y, low, high, left, right, scales, rest)


@device
def first_halves(a: Vector, b: Vector) -> Vector:
    return vselect(vlt(vindex(), HALF), a, vrotate_by_eight(b))


@device
def begin_halves(left: Vector, right: Vector, scales: Scales) -> Three:
    """Return the sums of 24 columns as three halves."""
    low = begin_sum(left, scales)
    return low, vrotate_by_eight(low), begin_sum(right, scales)


@device
def add_to_halves(sums: Three, row: Pointer, k: int, u: Vector, v: Vector, w: Vector) -> Three:
    """Add the products of an input with 24 columns."""
    a, b, c = sums
    return vfma_half(row[k], u, a), vfma_half(row[k], v, b), vfma_half(row[k], w, c)


@device
def store_halves(y: Pointer, sums: Three, left: Vector, right: Vector, scales: Scales, rest: int) -> None:
    a, b, c = sums
    store_wide(y, first_halves(a, b), c, left, right, scales, rest)


@outline
def multiply_rows_by_three_halves(x: Pointers, y: Pointers, panel: Panel) -> None:
    """Multiply four or eight rows by a panel of up to 24 columns, in half registers: nothing is rearranged."""
    taps, T, K, w, bias, scales, rest, accumulate = panel
    left, right = initial_wide_sums(bias, y, rest, accumulate)
    sums = each(begin_halves, left, right, scales)
    for t in range(T):
        p = each(add, x, taps[t])
        for k in range(K):
            u = vload_first(w, 0)
            sums = each(add_to_halves, sums, p, k, u, vrotate_by_eight(u), vload_second(w, 0))
            w = w + PANEL
    each(store_halves, y, sums, left, right, scales, rest)


@device
def load_columns(w: Pointer, part: int) -> Vector:
    """Return 16 columns of a row of a panel: those of a narrow one, or the first or second ones of a wide one."""
    if part == FIRST:
        return vload_first(w, 0)
    if part == SECOND:
        return vload_second(w, 0)
    return vload(w, 0)


@device
def multiply_rows_narrow(x: Pointers, y: Pointers, panel: Panel, part: int) -> None:
    """Multiply four rows by 16 columns, of which ``rest`` are stored: a narrow panel, or a part of a wide one."""
    taps, T, K, w, bias, scales, rest, accumulate = panel
    first = each(initial_sum, vload_part(bias, 0, rest), y, rest, accumulate)
    sums, step = each(begin_sum, first, scales), LANES if part == NARROW else PANEL
    for t in range(T):
        p = each(add, x, taps[t])
        for k in range(K):
            sums = each(vfma, each(getitem, p, k), load_columns(w, part), sums)
            w = w + step
    each(store_columns, y, rest, each(end_sum, sums, first, scales, 0, rest))


@device
def multiply_four_rows(x: Pointers, y: Pointers, panel: Panel) -> None:
    """Multiply four rows by the next panel, of which ``rest`` columns are stored.

    More than 24 need 32 registers; with fewer, 16 columns are multiplied at a time.
    """
    taps, T, K, w, bias, scales, rest, accumulate = panel
    if rest <= LANES:
        multiply_rows_narrow(x, y, panel, NARROW)
    elif rest <= LANES + HALF and not HAS_FULL_WIDTH_AVX512:
        multiply_rows_by_three_halves(x, y, panel)
    elif HAS_AVX512:
        multiply_rows_wide(x, y, panel)
    else:
        multiply_rows_narrow(x, y, (taps, T, K, w, bias, scales, LANES, accumulate), FIRST)
        second = taps, T, K, w, bias + LANES, offset_scales(scales, LANES), rest - LANES, accumulate
        multiply_rows_narrow(x, each(add, y, LANES), second, SECOND)
