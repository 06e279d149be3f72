"""A block of a product with eight rows and 24 columns, in half registers.

It is for processors without ``HAS_WHOLE_REGISTERS``: eight columns are half a register, and nothing is rearranged.
``product_eight`` has the same block in whole registers.
"""

from pulse.jit.language.simd import (
    LANES,
    Vector,
    vfma_half,
    vload_first,
    vload_part,
    vload_second,
    vrotate_by_eight,
)
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul.product_blocks import PANEL, initial_sum
from pulse.program.kernels.matmul.product_eight import first_halves, store_wide
from pulse.program.kernels.matmul.scales import Scales, begin_sum


@device
def multiply_eight_rows_by_three_halves(
    x: Pointer, rows_x: Pointer, taps: Pointer, T: int, K: int, w: Pointer, bias: Pointer, scales: Scales,
    y: Pointer, rows_y: Pointer, rest: int, accumulate: int,
) -> None:  # fmt: skip
    """Multiply eight rows by a panel of up to 24 columns."""
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
    a0, b0, c0 = begin_halves(left0, right0, scales)
    a1, b1, c1 = begin_halves(left1, right1, scales)
    a2, b2, c2 = begin_halves(left2, right2, scales)
    a3, b3, c3 = begin_halves(left3, right3, scales)
    a4, b4, c4 = begin_halves(left4, right4, scales)
    a5, b5, c5 = begin_halves(left5, right5, scales)
    a6, b6, c6 = begin_halves(left6, right6, scales)
    a7, b7, c7 = begin_halves(left7, right7, scales)
    for t in range(T):
        p = x + taps[t]
        p0, p1, p2, p3 = p + rows_x[0], p + rows_x[1], p + rows_x[2], p + rows_x[3]
        p4, p5, p6, p7 = p + rows_x[4], p + rows_x[5], p + rows_x[6], p + rows_x[7]
        for k in range(K):
            u, w_last = vload_first(w, 0), vload_second(w, 0)
            v = vrotate_by_eight(u)
            a0, b0, c0 = vfma_half(p0[k], u, a0), vfma_half(p0[k], v, b0), vfma_half(p0[k], w_last, c0)
            a1, b1, c1 = vfma_half(p1[k], u, a1), vfma_half(p1[k], v, b1), vfma_half(p1[k], w_last, c1)
            a2, b2, c2 = vfma_half(p2[k], u, a2), vfma_half(p2[k], v, b2), vfma_half(p2[k], w_last, c2)
            a3, b3, c3 = vfma_half(p3[k], u, a3), vfma_half(p3[k], v, b3), vfma_half(p3[k], w_last, c3)
            a4, b4, c4 = vfma_half(p4[k], u, a4), vfma_half(p4[k], v, b4), vfma_half(p4[k], w_last, c4)
            a5, b5, c5 = vfma_half(p5[k], u, a5), vfma_half(p5[k], v, b5), vfma_half(p5[k], w_last, c5)
            a6, b6, c6 = vfma_half(p6[k], u, a6), vfma_half(p6[k], v, b6), vfma_half(p6[k], w_last, c6)
            a7, b7, c7 = vfma_half(p7[k], u, a7), vfma_half(p7[k], v, b7), vfma_half(p7[k], w_last, c7)
            w = w + PANEL
    store_wide(y0, first_halves(a0, b0), c0, left0, right0, scales, rest)
    store_wide(y1, first_halves(a1, b1), c1, left1, right1, scales, rest)
    store_wide(y2, first_halves(a2, b2), c2, left2, right2, scales, rest)
    store_wide(y3, first_halves(a3, b3), c3, left3, right3, scales, rest)
    store_wide(y4, first_halves(a4, b4), c4, left4, right4, scales, rest)
    store_wide(y5, first_halves(a5, b5), c5, left5, right5, scales, rest)
    store_wide(y6, first_halves(a6, b6), c6, left6, right6, scales, rest)
    store_wide(y7, first_halves(a7, b7), c7, left7, right7, scales, rest)


@device
def begin_halves(left: Vector, right: Vector, scales: Scales) -> tuple[Vector, Vector, Vector]:
    """Return the sums of 24 columns as three halves."""
    low = begin_sum(left, scales)
    return low, vrotate_by_eight(low), begin_sum(right, scales)
