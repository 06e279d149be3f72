"""Products for several streams: a block of eight or four lanes shares one reading of the weights."""

from pulse.jit.lanes import EIGHT, lane, lane_count
from pulse.jit.language.simd import (
    LANES,
    Vector,
    vfma,
    vload_first,
    vload_part,
    vload_second,
    vsplat,
    vstore_part,
)
from pulse.jit.registry import device, lanes_of
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul_finish import finish
from pulse.program.kernels.matmul_product import Product, product
from pulse.program.kernels.matmul_product_blocks import (
    PANEL,
    four_rows_narrow,
    four_rows_wide,
    initial_sum,
    one_row_narrow,
    one_row_wide,
    panel_width,
)
from pulse.program.kernels.matmul_scales import Scales, begin_sum, end_sum, offset_scales


@device
def lane_x(row: Product, l: int, offset: int) -> Pointer:
    """Where a row of lane l is in x; past the last lane, that of the last one."""
    return lane(row, min(l, lane_count(row) - 1)).x + offset


@device
def lane_y(row: Product, l: int, offset: int) -> Pointer:
    """Where a row of lane l is in y; past the last lane, that of the last one."""
    return lane(row, min(l, lane_count(row) - 1)).y + offset


@device
def store_wide(
    y: Pointer, low: Vector, high: Vector, first: Vector, second: Vector, scales: Scales, rest: int
) -> None:
    """Store 32 columns of one row, of which ``rest`` exist; ``first`` and ``second`` are their initial sums."""
    vstore_part(y, 0, rest, end_sum(low, first, scales, 0, rest))
    vstore_part(y + LANES, 0, rest - LANES, end_sum(high, second, scales, LANES, rest - LANES))


@device
def eight_lanes_wide(
    row: Product, l: int, at_x: int, at_y: int, taps: Pointer, T: int, K: int,
    w: Pointer, bias: Pointer, scales: Scales, rest: int, accumulate: int,
) -> None:  # fmt: skip
    """Multiply one row of the lanes l … l + 7 with a panel of 32 columns, of which ``rest`` are stored."""
    low, high, more = vload_part(bias, 0, rest), vload_part(bias + LANES, 0, rest - LANES), rest - LANES
    x0, x1 = lane_x(row, l + 0, at_x), lane_x(row, l + 1, at_x)
    x2, x3 = lane_x(row, l + 2, at_x), lane_x(row, l + 3, at_x)
    x4, x5 = lane_x(row, l + 4, at_x), lane_x(row, l + 5, at_x)
    x6, x7 = lane_x(row, l + 6, at_x), lane_x(row, l + 7, at_x)
    y0, y1 = lane_y(row, l + 0, at_y), lane_y(row, l + 1, at_y)
    y2, y3 = lane_y(row, l + 2, at_y), lane_y(row, l + 3, at_y)
    y4, y5 = lane_y(row, l + 4, at_y), lane_y(row, l + 5, at_y)
    y6, y7 = lane_y(row, l + 6, at_y), lane_y(row, l + 7, at_y)
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


@lanes_of(product)
def product_lanes(row: Product) -> None:
    """Compute panel by panel, row by row, eight or four lanes at a time."""
    M, rows_x, rows_y, T, taps, K, N = row.M, row.rows_x, row.rows_y, row.T, row.taps, row.K, row.N
    weights, bias, scales, accumulate, L = row.W, row.bias, row.scales, row.accumulate, lane_count(row)
    n = 0
    while n < N:
        w, b, s, rest = weights + n * T * K, bias + n, offset_scales(scales, n), N - n
        width = panel_width(rest)
        for m in range(M):
            at_x, at_y, l = rows_x[m], rows_y[m] + n, 0
            while EIGHT and width > LANES and l + 4 < L:
                eight_lanes_wide(row, l, at_x, at_y, taps, T, K, w, b, s, rest, accumulate)
                l += 8
            while l + 1 < L:
                x0, x1 = lane_x(row, l, at_x), lane_x(row, l + 1, at_x)
                x2, x3 = lane_x(row, l + 2, at_x), lane_x(row, l + 3, at_x)
                y0, y1 = lane_y(row, l, at_y), lane_y(row, l + 1, at_y)
                y2, y3 = lane_y(row, l + 2, at_y), lane_y(row, l + 3, at_y)
                if width > LANES:
                    four_rows_wide(x0, x1, x2, x3, taps, T, K, w, b, s, y0, y1, y2, y3, rest, accumulate)
                else:
                    four_rows_narrow(x0, x1, x2, x3, taps, T, K, w, b, s, y0, y1, y2, y3, rest, accumulate)
                l += 4
            if l < L:
                x0, y0 = lane_x(row, l, at_x), lane_y(row, l, at_y)
                if width > LANES:
                    one_row_wide(x0, taps, T, K, w, b, s, y0, rest, accumulate)
                else:
                    one_row_narrow(x0, taps, T, K, w, b, s, y0, rest, accumulate)
        n += width
    for l in range(L):
        finish(lane(row, l).finish, lane(row, l).y, rows_y, M, N)
