"""Depthwise windows: every channel with weights of its own."""

from pulse.program.kernels.finish import finish
from pulse.program.kernels.pointer import Bases, Row, f32, i64, number
from pulse.program.kernels.registry import kernel
from pulse.program.kernels.simd import LANES, vfma, vload_part, vstore_part


@kernel
def depthwise(row: Row, bases: Bases) -> None:
    """y[rows_y[m] + c] = bias[c] + sum_t x[rows_x[m] + taps[t] + c] * w[t*C + c], f32.

    Arguments: x, w [T, C], bias, y, M, rows_x, rows_y, T, taps, C, and the steps of ``finish``. Weights are read once
    per four rows.
    """
    x, weights, bias, y = f32(row, bases, 0), f32(row, bases, 1), f32(row, bases, 2), f32(row, bases, 3)
    M, rows_x, rows_y, T = number(row, 4), i64(row, bases, 5), i64(row, bases, 6), number(row, 7)
    taps, C = i64(row, bases, 8), number(row, 9)
    c = 0
    while c < C:
        rest = C - c
        first = vload_part(bias, c, rest)
        m = 0
        while m + 2 <= M:
            m2, m3 = min(m + 2, M - 1), min(m + 3, M - 1)  # past the last row: the last one again
            p0, p1, p2, p3 = x + rows_x[m], x + rows_x[m + 1], x + rows_x[m2], x + rows_x[m3]
            sum0, sum1, sum2, sum3 = first, first, first, first
            w = weights + c
            for t in range(T):
                at, w_t = taps[t] + c, vload_part(w, 0, rest)
                sum0, sum1 = (
                    vfma(vload_part(p0, at, rest), w_t, sum0),
                    vfma(vload_part(p1, at, rest), w_t, sum1),
                )
                sum2, sum3 = (
                    vfma(vload_part(p2, at, rest), w_t, sum2),
                    vfma(vload_part(p3, at, rest), w_t, sum3),
                )
                w = w + C
            vstore_part(y, rows_y[m] + c, rest, sum0)
            vstore_part(y, rows_y[m + 1] + c, rest, sum1)
            vstore_part(y, rows_y[m2] + c, rest, sum2)
            vstore_part(y, rows_y[m3] + c, rest, sum3)
            m += 4
        if m < M:
            p0, sum0, w = x + rows_x[m], first, weights + c
            for t in range(T):
                sum0 = vfma(vload_part(p0, taps[t] + c, rest), vload_part(w, 0, rest), sum0)
                w = w + C
            vstore_part(y, rows_y[m] + c, rest, sum0)
        c += LANES
    finish(row, bases, 10, y, rows_y, M, C)
