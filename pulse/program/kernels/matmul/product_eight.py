"""Blocks of a product with eight rows: 32, 24, 16 or 8 columns of packed weights."""

from pulse.jit.language.simd import (
    LANES,
    Vector,
    vadd_pairs,
    vbroadcast_twos,
    vfma,
    vfma_half,
    vindex,
    vinterleave_first,
    vload,
    vload_first,
    vload_part,
    vload_second,
    vlt,
    vrotate_by_eight,
    vselect,
    vsplat,
    vstore,
    vzero,
)
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul.product_blocks import HALF, PANEL, initial_sum, store_columns
from pulse.program.kernels.matmul.scales import Scales, begin_sum, end_sum


@device
def store_wide(
    y: Pointer, low: Vector, high: Vector, first: Vector, second: Vector, scales: Scales, rest: int
) -> None:
    """Store 32 columns of one row, of which ``rest`` exist; ``first`` and ``second`` are their initial sums."""
    vstore(y, 0, end_sum(low, first, scales, 0, LANES))
    store_columns(y + LANES, rest - LANES, end_sum(high, second, scales, LANES, rest - LANES))


@device
def multiply_eight_rows_wide(
    x0: Pointer, x1: Pointer, x2: Pointer, x3: Pointer, x4: Pointer, x5: Pointer, x6: Pointer, x7: Pointer,
    taps: Pointer, T: int, K: int, w: Pointer, bias: Pointer, scales: Scales,
    y0: Pointer, y1: Pointer, y2: Pointer, y3: Pointer, y4: Pointer, y5: Pointer, y6: Pointer, y7: Pointer,
    rest: int, accumulate: int,
) -> None:  # fmt: skip
    """Multiply eight rows by a panel of 32 columns, of which ``rest`` are stored; needs 32 registers."""
    low, high, more = vload_part(bias, 0, rest), vload_part(bias + LANES, 0, rest - LANES), rest - LANES
    left0, right0 = initial_sum(low, y0, rest, accumulate), initial_sum(high, y0 + LANES, more, accumulate)
    left1, right1 = initial_sum(low, y1, rest, accumulate), initial_sum(high, y1 + LANES, more, accumulate)
    left2, right2 = initial_sum(low, y2, rest, accumulate), initial_sum(high, y2 + LANES, more, accumulate)
    left3, right3 = initial_sum(low, y3, rest, accumulate), initial_sum(high, y3 + LANES, more, accumulate)
    left4, right4 = initial_sum(low, y4, rest, accumulate), initial_sum(high, y4 + LANES, more, accumulate)
    left5, right5 = initial_sum(low, y5, rest, accumulate), initial_sum(high, y5 + LANES, more, accumulate)
    left6, right6 = initial_sum(low, y6, rest, accumulate), initial_sum(high, y6 + LANES, more, accumulate)
    left7, right7 = initial_sum(low, y7, rest, accumulate), initial_sum(high, y7 + LANES, more, accumulate)
    low0, high0 = begin_sum(left0, scales), begin_sum(right0, scales)
    low1, high1 = begin_sum(left1, scales), begin_sum(right1, scales)
    low2, high2 = begin_sum(left2, scales), begin_sum(right2, scales)
    low3, high3 = begin_sum(left3, scales), begin_sum(right3, scales)
    low4, high4 = begin_sum(left4, scales), begin_sum(right4, scales)
    low5, high5 = begin_sum(left5, scales), begin_sum(right5, scales)
    low6, high6 = begin_sum(left6, scales), begin_sum(right6, scales)
    low7, high7 = begin_sum(left7, scales), begin_sum(right7, scales)
    for t in range(T):
        tap = taps[t]
        p0, p1, p2, p3 = x0 + tap, x1 + tap, x2 + tap, x3 + tap
        p4, p5, p6, p7 = x4 + tap, x5 + tap, x6 + tap, x7 + tap
        for k in range(K):
            left, right = vload_first(w, 0), vload_second(w, 0)
            a, b, c, d = vsplat(p0[k]), vsplat(p1[k]), vsplat(p2[k]), vsplat(p3[k])
            e, f, g, h = vsplat(p4[k]), vsplat(p5[k]), vsplat(p6[k]), vsplat(p7[k])
            low0, high0 = vfma(a, left, low0), vfma(a, right, high0)
            low1, high1 = vfma(b, left, low1), vfma(b, right, high1)
            low2, high2 = vfma(c, left, low2), vfma(c, right, high2)
            low3, high3 = vfma(d, left, low3), vfma(d, right, high3)
            low4, high4 = vfma(e, left, low4), vfma(e, right, high4)
            low5, high5 = vfma(f, left, low5), vfma(f, right, high5)
            low6, high6 = vfma(g, left, low6), vfma(g, right, high6)
            low7, high7 = vfma(h, left, low7), vfma(h, right, high7)
            w = w + PANEL
    store_wide(y0, low0, high0, left0, right0, scales, rest)
    store_wide(y1, low1, high1, left1, right1, scales, rest)
    store_wide(y2, low2, high2, left2, right2, scales, rest)
    store_wide(y3, low3, high3, left3, right3, scales, rest)
    store_wide(y4, low4, high4, left4, right4, scales, rest)
    store_wide(y5, low5, high5, left5, right5, scales, rest)
    store_wide(y6, low6, high6, left6, right6, scales, rest)
    store_wide(y7, low7, high7, left7, right7, scales, rest)


@device
def begin_three(
    left0: Vector, right0: Vector, left1: Vector, right1: Vector, scales: Scales
) -> tuple[Vector, Vector, Vector]:
    """Return the sums of two rows of 24 columns as three full vectors: 16 columns of the first, 8 of each, 16 of the
    second.
    """
    low0, high0, low1 = begin_sum(left0, scales), begin_sum(right0, scales), begin_sum(left1, scales)
    return low0, first_halves(high0, low1), second_and_first_half(low1, begin_sum(right1, scales))


@device
def first_halves(a: Vector, b: Vector) -> Vector:
    """Return the first eight lanes of both."""
    return vselect(vlt(vindex(), HALF), a, vrotate_by_eight(b))


@device
def second_and_first_half(a: Vector, b: Vector) -> Vector:
    """Return the last eight lanes of a and the first eight of b."""
    return vselect(vlt(vindex(), HALF), vrotate_by_eight(a), vrotate_by_eight(b))


@device
def multiply_eight_rows_by_24(
    x: Pointer, rows_x: Pointer, taps: Pointer, T: int, K: int, w: Pointer, bias: Pointer, scales: Scales,
    y: Pointer, rows_y: Pointer, rest: int, accumulate: int, M: int,
) -> None:  # fmt: skip
    """Multiply eight rows by a panel of up to 24 columns: two rows share three registers.

    M is at least 8. The compiler does not know this, so it selects by a mask, which any port can do; it would make
    permutations of a constant mask, and those take turns with the products.
    """
    low, high, more = vload_part(bias, 0, rest), vload_part(bias + LANES, 0, rest - LANES), rest - LANES
    y0, y1, y2, y3 = y + rows_y[0], y + rows_y[1], y + rows_y[2], y + rows_y[3]
    y4, y5, y6, y7 = y + rows_y[4], y + rows_y[5], y + rows_y[6], y + rows_y[7]
    left0, right0 = initial_sum(low, y0, rest, accumulate), initial_sum(high, y0 + LANES, more, accumulate)
    left1, right1 = initial_sum(low, y1, rest, accumulate), initial_sum(high, y1 + LANES, more, accumulate)
    left2, right2 = initial_sum(low, y2, rest, accumulate), initial_sum(high, y2 + LANES, more, accumulate)
    left3, right3 = initial_sum(low, y3, rest, accumulate), initial_sum(high, y3 + LANES, more, accumulate)
    left4, right4 = initial_sum(low, y4, rest, accumulate), initial_sum(high, y4 + LANES, more, accumulate)
    left5, right5 = initial_sum(low, y5, rest, accumulate), initial_sum(high, y5 + LANES, more, accumulate)
    left6, right6 = initial_sum(low, y6, rest, accumulate), initial_sum(high, y6 + LANES, more, accumulate)
    left7, right7 = initial_sum(low, y7, rest, accumulate), initial_sum(high, y7 + LANES, more, accumulate)
    a0, b0, c0 = begin_three(left0, right0, left1, right1, scales)
    a1, b1, c1 = begin_three(left2, right2, left3, right3, scales)
    a2, b2, c2 = begin_three(left4, right4, left5, right5, scales)
    a3, b3, c3 = begin_three(left6, right6, left7, right7, scales)
    lower = vlt(vindex(), min(HALF, M))
    for t in range(T):
        p = x + taps[t]
        p0, p1, p2, p3 = p + rows_x[0], p + rows_x[1], p + rows_x[2], p + rows_x[3]
        p4, p5, p6, p7 = p + rows_x[4], p + rows_x[5], p + rows_x[6], p + rows_x[7]
        for k in range(K):
            first, middle = vload_first(w, 0), vload_second(w, 0)
            last = second_and_first_half(first, middle)
            u, v = vsplat(p0[k]), vsplat(p1[k])
            a0, b0, c0 = vfma(u, first, a0), vfma(vselect(lower, u, v), middle, b0), vfma(v, last, c0)
            u, v = vsplat(p2[k]), vsplat(p3[k])
            a1, b1, c1 = vfma(u, first, a1), vfma(vselect(lower, u, v), middle, b1), vfma(v, last, c1)
            u, v = vsplat(p4[k]), vsplat(p5[k])
            a2, b2, c2 = vfma(u, first, a2), vfma(vselect(lower, u, v), middle, b2), vfma(v, last, c2)
            u, v = vsplat(p6[k]), vsplat(p7[k])
            a3, b3, c3 = vfma(u, first, a3), vfma(vselect(lower, u, v), middle, b3), vfma(v, last, c3)
            w = w + PANEL
    store_wide(y0, a0, b0, left0, right0, scales, rest)
    store_wide(y1, second_and_first_half(b0, c0), vrotate_by_eight(c0), left1, right1, scales, rest)
    store_wide(y2, a1, b1, left2, right2, scales, rest)
    store_wide(y3, second_and_first_half(b1, c1), vrotate_by_eight(c1), left3, right3, scales, rest)
    store_wide(y4, a2, b2, left4, right4, scales, rest)
    store_wide(y5, second_and_first_half(b2, c2), vrotate_by_eight(c2), left5, right5, scales, rest)
    store_wide(y6, a3, b3, left6, right6, scales, rest)
    store_wide(y7, second_and_first_half(b3, c3), vrotate_by_eight(c3), left7, right7, scales, rest)


@device
def store_sum(y: Pointer, rest: int, total: Vector, bias: Vector, scales: Scales, accumulate: int) -> None:
    """Write the first ``rest`` of 16 sums, plus what is there if it accumulates.

    It is the last step, so that a block does not keep the addresses of its results while it sums.
    """
    total = end_sum(total, bias, scales, 0, rest)
    if accumulate:
        total = total + vload_part(y, 0, rest)
    store_columns(y, rest, total)


@device
def add_product(a: float, column: Vector, total: Vector, half: bool) -> Vector:
    """Add a product to the 16 lanes of a sum, or to the first eight."""
    return vfma_half(a, column, total) if half else vfma(a, column, total)


@device
def multiply_eight_rows_narrow(
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
    half: bool,
) -> None:
    """Multiply eight rows by a panel of 16 columns, or of 8 in half registers.

    These are enough independent sums to keep the adders busy.
    """
    b = vload_part(bias, 0, rest)
    first = begin_sum(b, scales)
    sum0, sum1, sum2, sum3 = first, first, first, first
    sum4, sum5, sum6, sum7 = first, first, first, first
    r0, r1, r2, r3 = rows_x[0], rows_x[1], rows_x[2], rows_x[3]
    r4, r5, r6, r7 = rows_x[4], rows_x[5], rows_x[6], rows_x[7]
    for t in range(T):
        p = x + taps[t]
        for _ in range(K):
            column = vload(w, 0)
            sum0, sum1 = add_product(p[r0], column, sum0, half), add_product(p[r1], column, sum1, half)
            sum2, sum3 = add_product(p[r2], column, sum2, half), add_product(p[r3], column, sum3, half)
            sum4, sum5 = add_product(p[r4], column, sum4, half), add_product(p[r5], column, sum5, half)
            sum6, sum7 = add_product(p[r6], column, sum6, half), add_product(p[r7], column, sum7, half)
            p, w = p + 1, w + LANES
    store_sum(y + rows_y[0], rest, sum0, b, scales, accumulate)
    store_sum(y + rows_y[1], rest, sum1, b, scales, accumulate)
    store_sum(y + rows_y[2], rest, sum2, b, scales, accumulate)
    store_sum(y + rows_y[3], rest, sum3, b, scales, accumulate)
    store_sum(y + rows_y[4], rest, sum4, b, scales, accumulate)
    store_sum(y + rows_y[5], rest, sum5, b, scales, accumulate)
    store_sum(y + rows_y[6], rest, sum6, b, scales, accumulate)
    store_sum(y + rows_y[7], rest, sum7, b, scales, accumulate)


@device
def multiply_eight_rows_by_8(
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
    """Multiply eight rows by a panel of up to 8 columns.

    A register has two inputs of a row for each column, in neighbouring lanes; the last of an odd number of inputs is
    multiplied alone.
    """
    b = vload_part(bias, 0, rest)
    last0 = begin_sum(b, scales)
    last1, last2, last3, last4, last5, last6, last7 = last0, last0, last0, last0, last0, last0, last0
    sum0, sum1, sum2, sum3 = vzero(), vzero(), vzero(), vzero()
    sum4, sum5, sum6, sum7 = vzero(), vzero(), vzero(), vzero()
    r0, r1, r2, r3 = rows_x[0], rows_x[1], rows_x[2], rows_x[3]
    r4, r5, r6, r7 = rows_x[4], rows_x[5], rows_x[6], rows_x[7]
    for t in range(T):
        p = x + taps[t]
        for _ in range(K >> 1):
            pair = vinterleave_first(vload(w, 0), vload(w, LANES))
            sum0, sum1 = vfma(vbroadcast_twos(p, r0), pair, sum0), vfma(vbroadcast_twos(p, r1), pair, sum1)
            sum2, sum3 = vfma(vbroadcast_twos(p, r2), pair, sum2), vfma(vbroadcast_twos(p, r3), pair, sum3)
            sum4, sum5 = vfma(vbroadcast_twos(p, r4), pair, sum4), vfma(vbroadcast_twos(p, r5), pair, sum5)
            sum6, sum7 = vfma(vbroadcast_twos(p, r6), pair, sum6), vfma(vbroadcast_twos(p, r7), pair, sum7)
            p, w = p + 2, w + 2 * LANES
        if K & 1:
            column = vload(w, 0)
            last0, last1 = vfma_half(p[r0], column, last0), vfma_half(p[r1], column, last1)
            last2, last3 = vfma_half(p[r2], column, last2), vfma_half(p[r3], column, last3)
            last4, last5 = vfma_half(p[r4], column, last4), vfma_half(p[r5], column, last5)
            last6, last7 = vfma_half(p[r6], column, last6), vfma_half(p[r7], column, last7)
            w = w + LANES
    sum0, sum2 = vadd_pairs(sum0, sum1), vadd_pairs(sum2, sum3)
    sum4, sum6 = vadd_pairs(sum4, sum5), vadd_pairs(sum6, sum7)
    store_sum(y + rows_y[0], rest, sum0 + last0, b, scales, accumulate)
    store_sum(y + rows_y[1], rest, vrotate_by_eight(sum0) + last1, b, scales, accumulate)
    store_sum(y + rows_y[2], rest, sum2 + last2, b, scales, accumulate)
    store_sum(y + rows_y[3], rest, vrotate_by_eight(sum2) + last3, b, scales, accumulate)
    store_sum(y + rows_y[4], rest, sum4 + last4, b, scales, accumulate)
    store_sum(y + rows_y[5], rest, vrotate_by_eight(sum4) + last5, b, scales, accumulate)
    store_sum(y + rows_y[6], rest, sum6 + last6, b, scales, accumulate)
    store_sum(y + rows_y[7], rest, vrotate_by_eight(sum6) + last7, b, scales, accumulate)
