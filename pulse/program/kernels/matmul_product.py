"""Products of sliding windows with packed weights: f32, f16, bf16, or int8 with a scale for each column.

The sums are f32 in every form. Each kernel has one form of weights; their code is shared.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.byte_dots import has_byte_dots
from pulse.jit.cut import Cut
from pulse.jit.instruction import Operand, ScalesOperand, packed_weights, reads, weight_scales
from pulse.jit.pointer import Pointer
from pulse.jit.registry import device, kernel
from pulse.jit.simd import (
    LANES,
    Vector,
    in_pairs,
    vfma,
    vload,
    vload_first,
    vload_part,
    vload_second,
    vsplat,
    vstore_part,
    vzero,
)
from pulse.jit.span import Reach, run
from pulse.jit.stack import stack_f32
from pulse.program.kernels.matmul_digits import DIGITS, digits_of_taps, sum_taps, sum_taps_wide
from pulse.program.kernels.matmul_finish import Finish, finish
from pulse.program.kernels.matmul_scales import Scales, begin_sum, end_sum, offset_scales
from pulse.program.kernels.matmul_windows import ProductRows

PANEL = 2 * LANES  # the columns of a panel of packed weights; the last may be half as wide
ROWS = 8  # the most rows of a block


def pack_product(w: NDArray[Any]) -> NDArray[Any]:
    """Pack weights [R, N] of any type in the order that ``product`` reads: panels of 32 columns, each row by row.

    A last panel of up to 16 columns is 16 wide; missing columns are zeros. Rows of 32 columns are ``in_pairs``.
    """
    rows, columns = w.shape
    panels: list[NDArray[Any]] = []
    for first in range(0, columns, PANEL):
        part = w[:, first : first + PANEL]
        panel = np.zeros((rows, LANES if part.shape[1] <= LANES else PANEL), w.dtype)
        panel[:, : part.shape[1]] = part
        panels.append((in_pairs(panel) if panel.shape[1] == PANEL else panel).ravel())
    return np.concatenate(panels) if panels else np.zeros(0, w.dtype)


@device
def initial_sum(bias: Vector, y: Pointer, rest: int, accumulate: int) -> Vector:
    """Return the initial sum: the bias, plus the value in y if it accumulates."""
    if accumulate:
        return bias + vload_part(y, 0, rest)
    return bias


@device
def one_row_wide(
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
    """Multiply one row with a panel of 32 columns, of which ``rest`` are stored."""
    first0 = initial_sum(vload_part(bias, 0, rest), y, rest, accumulate)
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
    low = end_sum((low + low1) + (low2 + low3), first0, scales, 0, rest)
    high = end_sum((high + high1) + (high2 + high3), first1, scales, LANES, rest - LANES)
    vstore_part(y, 0, rest, low)
    vstore_part(y + LANES, 0, rest - LANES, high)


@device
def one_row_narrow(
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
    """Multiply one row with a panel of 16 columns, of which ``rest`` are stored."""
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
    vstore_part(y, 0, rest, total)


@device
def four_rows_wide(
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
    """Multiply four rows with a panel of 32 columns, of which ``rest`` are stored."""
    low, high, more = vload_part(bias, 0, rest), vload_part(bias + LANES, 0, rest - LANES), rest - LANES
    left0, right0 = initial_sum(low, y0, rest, accumulate), initial_sum(high, y0 + LANES, more, accumulate)
    left1, right1 = initial_sum(low, y1, rest, accumulate), initial_sum(high, y1 + LANES, more, accumulate)
    left2, right2 = initial_sum(low, y2, rest, accumulate), initial_sum(high, y2 + LANES, more, accumulate)
    left3, right3 = initial_sum(low, y3, rest, accumulate), initial_sum(high, y3 + LANES, more, accumulate)
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
    vstore_part(y0, 0, rest, end_sum(low0, left0, scales, 0, rest))
    vstore_part(y1, 0, rest, end_sum(low1, left1, scales, 0, rest))
    vstore_part(y2, 0, rest, end_sum(low2, left2, scales, 0, rest))
    vstore_part(y3, 0, rest, end_sum(low3, left3, scales, 0, rest))
    vstore_part(y0 + LANES, 0, more, end_sum(high0, right0, scales, LANES, more))
    vstore_part(y1 + LANES, 0, more, end_sum(high1, right1, scales, LANES, more))
    vstore_part(y2 + LANES, 0, more, end_sum(high2, right2, scales, LANES, more))
    vstore_part(y3 + LANES, 0, more, end_sum(high3, right3, scales, LANES, more))


@device
def four_rows_narrow(
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
    """Multiply four rows with a panel of 16 columns, of which ``rest`` are stored."""
    b = vload_part(bias, 0, rest)
    first0, first1 = initial_sum(b, y0, rest, accumulate), initial_sum(b, y1, rest, accumulate)
    first2, first3 = initial_sum(b, y2, rest, accumulate), initial_sum(b, y3, rest, accumulate)
    sum0, sum1 = begin_sum(first0, scales), begin_sum(first1, scales)
    sum2, sum3 = begin_sum(first2, scales), begin_sum(first3, scales)
    for t in range(T):
        tap = taps[t]
        p0, p1, p2, p3 = x0 + tap, x1 + tap, x2 + tap, x3 + tap
        for k in range(K):
            column = vload(w, 0)
            sum0, sum1 = vfma(p0[k], column, sum0), vfma(p1[k], column, sum1)
            sum2, sum3 = vfma(p2[k], column, sum2), vfma(p3[k], column, sum3)
            w = w + LANES
    vstore_part(y0, 0, rest, end_sum(sum0, first0, scales, 0, rest))
    vstore_part(y1, 0, rest, end_sum(sum1, first1, scales, 0, rest))
    vstore_part(y2, 0, rest, end_sum(sum2, first2, scales, 0, rest))
    vstore_part(y3, 0, rest, end_sum(sum3, first3, scales, 0, rest))


@device
def eight_rows_narrow(
    x: Pointer,
    rows_x: Pointer,
    taps: Pointer,
    T: int,
    K: int,
    w: Pointer,
    bias: Pointer,
    scales: Scales,
    y: Pointer,
    rows_y: Pointer,
    rest: int,
    accumulate: int,
) -> None:
    """Multiply eight rows with a panel of 16 columns: enough independent sums to keep the adders busy."""
    b = vload_part(bias, 0, rest)
    y0, y1, y2, y3 = y + rows_y[0], y + rows_y[1], y + rows_y[2], y + rows_y[3]
    y4, y5, y6, y7 = y + rows_y[4], y + rows_y[5], y + rows_y[6], y + rows_y[7]
    first0, first1 = initial_sum(b, y0, rest, accumulate), initial_sum(b, y1, rest, accumulate)
    first2, first3 = initial_sum(b, y2, rest, accumulate), initial_sum(b, y3, rest, accumulate)
    first4, first5 = initial_sum(b, y4, rest, accumulate), initial_sum(b, y5, rest, accumulate)
    first6, first7 = initial_sum(b, y6, rest, accumulate), initial_sum(b, y7, rest, accumulate)
    sum0, sum1 = begin_sum(first0, scales), begin_sum(first1, scales)
    sum2, sum3 = begin_sum(first2, scales), begin_sum(first3, scales)
    sum4, sum5 = begin_sum(first4, scales), begin_sum(first5, scales)
    sum6, sum7 = begin_sum(first6, scales), begin_sum(first7, scales)
    for t in range(T):
        p = x + taps[t]
        p0, p1, p2, p3 = p + rows_x[0], p + rows_x[1], p + rows_x[2], p + rows_x[3]
        p4, p5, p6, p7 = p + rows_x[4], p + rows_x[5], p + rows_x[6], p + rows_x[7]
        for k in range(K):
            column = vload(w, 0)
            sum0, sum1 = vfma(p0[k], column, sum0), vfma(p1[k], column, sum1)
            sum2, sum3 = vfma(p2[k], column, sum2), vfma(p3[k], column, sum3)
            sum4, sum5 = vfma(p4[k], column, sum4), vfma(p5[k], column, sum5)
            sum6, sum7 = vfma(p6[k], column, sum6), vfma(p7[k], column, sum7)
            w = w + LANES
    vstore_part(y0, 0, rest, end_sum(sum0, first0, scales, 0, rest))
    vstore_part(y1, 0, rest, end_sum(sum1, first1, scales, 0, rest))
    vstore_part(y2, 0, rest, end_sum(sum2, first2, scales, 0, rest))
    vstore_part(y3, 0, rest, end_sum(sum3, first3, scales, 0, rest))
    vstore_part(y4, 0, rest, end_sum(sum4, first4, scales, 0, rest))
    vstore_part(y5, 0, rest, end_sum(sum5, first5, scales, 0, rest))
    vstore_part(y6, 0, rest, end_sum(sum6, first6, scales, 0, rest))
    vstore_part(y7, 0, rest, end_sum(sum7, first7, scales, 0, rest))


@device
def digit_row(
    x: Pointer,
    taps: Pointer,
    T: int,
    K: int,
    weights: Pointer,
    bias: Pointer,
    scales: Scales,
    y: Pointer,
    N: int,
    accumulate: int,
    memory: Pointer,
) -> None:
    """Multiply one row with all panels, by its digits if it has some."""
    digits, n = digits_of_taps(x, taps, T, K, scales, memory), 0
    while n < N:
        w, b, s, here, rest = weights + n * T * K, bias + n, offset_scales(scales, n), y + n, N - n
        if digits[1] > 0:
            first = initial_sum(vload_part(b, 0, rest), here, rest, accumulate)
            if rest > LANES:
                more = rest - LANES
                second = initial_sum(vload_part(b + LANES, 0, more), here + LANES, more, accumulate)
                low, high = sum_taps_wide(digits, x, taps, T, K, w)
                vstore_part(here, 0, rest, end_sum(low, first, s, 0, rest))
                vstore_part(here + LANES, 0, more, end_sum(high, second, s, LANES, more))
            else:
                low = sum_taps(digits, x, taps, T, K, w)
                vstore_part(here, 0, rest, end_sum(low, first, s, 0, rest))
        elif rest > LANES:
            one_row_wide(x, taps, T, K, w, b, s, here, rest, accumulate)
        else:
            one_row_narrow(x, taps, T, K, w, b, s, here, rest, accumulate)
        n += PANEL


@device
def digit_rows(row: "Product", scales: Scales) -> int:
    """Multiply one or two rows with all int8 panels by digits, if that is faster; return the number of columns done."""
    if scales is None:
        return 0
    M, N, x, y, rows_x, rows_y = row.M, row.N, row.x, row.y, row.rows_x, row.rows_y
    if not has_byte_dots() or M > 2:
        return 0
    memory = stack_f32(DIGITS)
    for m in range(M):
        digit_row(
            x + rows_x[m], row.taps, row.T, row.K, row.W, row.bias, scales,
            y + rows_y[m], N, row.accumulate, memory,
        )  # fmt: skip
    return N


@device
def one_row_panels(row: "Product", scales: Scales) -> int:
    """Multiply a single row with the whole panels; return the number of columns done.

    This is a separate loop because all stores are whole vectors and its pointers stay in registers.
    """
    if row.M != 1:
        return 0
    T, taps, K, N, accumulate, size = row.T, row.taps, row.K, row.N, row.accumulate, row.T * row.K * PANEL
    x, w, bias, y, n = row.x + row.rows_x[0], row.W, row.bias, row.y + row.rows_y[0], 0
    while n + PANEL <= N:
        one_row_wide(x, taps, T, K, w, bias, scales, y, PANEL, accumulate)
        w, bias, scales, y = w + size, bias + PANEL, offset_scales(scales, PANEL), y + PANEL
        n += PANEL
    return n


class PackedProduct(ProductRows):
    """A product with packed weights, which have scales if they are int8."""

    W: Operand = packed_weights()
    bias: Operand = reads("f32", "N")
    scales: ScalesOperand = weight_scales()


class Product(PackedProduct):
    """y[rows_y[m] + n] = bias[n] + sum_tk x[rows_x[m] + taps[t] + k] * W[t*K + k, n] (+ y[...]), f32; then the steps
    of ``finish``.

    W is from ``pack_product``; int8 weights are ``W * scales``. It is read once per four rows.
    """

    finish: Finish

    def cuts(self) -> Iterator[Cut]:
        """Cut rows and columns. One or two int8 rows are computed differently, so parts have at least eight."""
        depth = self.T * self.K
        yield Cut("M", ROWS, {"rows_x": 1, "rows_y": 1, **self.finish.row_moves()}, shared=depth * self.N)
        columns = self.finish.column_moves()
        if columns is not None:
            moves = {"W": depth, "bias": 1, "scales": 1, "y": 1, **columns}
            yield Cut("N", PANEL, moves, {"finish.flat": 0}, shared=self.M * depth)

    def reaches(self) -> Iterator[Reach]:
        yield from self.window_reaches(self.K, self.N)
        yield self.W, run(self.T * self.K * -(-self.N // LANES) * LANES)
        yield self.scales, run(self.N)
        yield from self.finish.reaches_on(self.y, self.rows_y, self.M, self.N)


@kernel
def product(row: Product) -> None:
    """Compute panel by panel, four or eight rows at a time."""
    x, weights, bias, y, scales = row.x, row.W, row.bias, row.y, row.scales
    M, rows_x, rows_y, T, taps, K, N = row.M, row.rows_x, row.rows_y, row.T, row.taps, row.K, row.N
    accumulate = row.accumulate
    n = digit_rows(row, scales)
    if n == 0:
        n = one_row_panels(row, scales)
    while n < N:
        w, s, rest = weights + n * T * K, offset_scales(scales, n), N - n
        m = 0
        while m + 8 <= M and rest <= LANES:
            eight_rows_narrow(x, rows_x + m, taps, T, K, w, bias + n, s, y + n, rows_y + m, rest, accumulate)
            m += 8
        while m + 3 <= M:
            last = min(m + 3, M - 1)  # the last block of three computes its third row twice
            x0, x1, x2, x3 = x + rows_x[m], x + rows_x[m + 1], x + rows_x[m + 2], x + rows_x[last]
            y0, y1, y2, y3 = y + rows_y[m], y + rows_y[m + 1], y + rows_y[m + 2], y + rows_y[last]
            y0, y1, y2, y3 = y0 + n, y1 + n, y2 + n, y3 + n
            if rest > LANES:
                four_rows_wide(x0, x1, x2, x3, taps, T, K, w, bias + n, s, y0, y1, y2, y3, rest, accumulate)
            else:
                four_rows_narrow(x0, x1, x2, x3, taps, T, K, w, bias + n, s, y0, y1, y2, y3, rest, accumulate)
            m += 4
        while m < M:
            x0, y0 = x + rows_x[m], y + rows_y[m] + n
            if rest > LANES:
                one_row_wide(x0, taps, T, K, w, bias + n, s, y0, rest, accumulate)
            else:
                one_row_narrow(x0, taps, T, K, w, bias + n, s, y0, rest, accumulate)
            m += 1
        n += PANEL
    finish(row.finish, y, rows_y, M, N)
