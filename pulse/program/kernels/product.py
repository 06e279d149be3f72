"""Products: sliding windows against packed weights, and two run-time operands against each other."""

import numpy as np
from numpy.typing import NDArray

from pulse.program.kernels.lanes import GROUP, lane, lane_count
from pulse.program.kernels.pointer import Bases, Pointer, Row, f32, i64, number
from pulse.program.kernels.registry import device, kernel, lanes_of
from pulse.program.kernels.simd import (
    LANES,
    Lanes,
    vfma,
    vload,
    vload_part,
    vmax,
    vsplat,
    vstore_part,
    vsum,
    vzero,
)

PANEL = 2 * LANES  # columns of a panel of packed weights; the last may be half as wide
RELU = 1


def pack_product(w: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weights [R, N] in the order that ``product`` reads them: panels of 32 columns, each row by row.

    A last panel of up to 16 columns is 16 wide; missing columns are zeros.
    """
    rows, columns = w.shape
    panels: list[NDArray[np.float32]] = []
    for first in range(0, columns, PANEL):
        part = w[:, first : first + PANEL]
        panel = np.zeros((rows, LANES if part.shape[1] <= LANES else PANEL), np.float32)
        panel[:, : part.shape[1]] = part
        panels.append(panel.ravel())
    return np.concatenate(panels) if panels else np.zeros(0, np.float32)


@device
def activated(v: Lanes, activation: int) -> Lanes:
    """The activation of a code: 0 none, 1 relu."""
    if activation == RELU:
        return vmax(v, 0.0)
    return v


@device
def start(bias: Lanes, y: Pointer, rest: int, accumulate: int) -> Lanes:
    """What a sum begins with: the bias, plus what is in y if it accumulates."""
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
    y: Pointer,
    rest: int,
    accumulate: int,
    activation: int,
) -> None:
    """One row against a panel of 32 columns, of which ``rest`` are stored."""
    low = start(vload_part(bias, 0, rest), y, rest, accumulate)
    high = start(vload_part(bias + LANES, 0, rest - LANES), y + LANES, rest - LANES, accumulate)
    low1, high1, low2, high2, low3, high3 = vzero(), vzero(), vzero(), vzero(), vzero(), vzero()
    for t in range(T):
        p = x + taps[t]
        k = 0
        while k + 4 <= K:
            a, b, c, d = vsplat(p[k]), vsplat(p[k + 1]), vsplat(p[k + 2]), vsplat(p[k + 3])
            low, high = vfma(a, vload(w, 0), low), vfma(a, vload(w, 16), high)
            low1, high1 = vfma(b, vload(w, 32), low1), vfma(b, vload(w, 48), high1)
            low2, high2 = vfma(c, vload(w, 64), low2), vfma(c, vload(w, 80), high2)
            low3, high3 = vfma(d, vload(w, 96), low3), vfma(d, vload(w, 112), high3)
            w = w + 4 * PANEL
            k += 4
        while k < K:
            a = vsplat(p[k])
            low, high = vfma(a, vload(w, 0), low), vfma(a, vload(w, 16), high)
            w = w + PANEL
            k += 1
    vstore_part(y, 0, rest, activated((low + low1) + (low2 + low3), activation))
    vstore_part(y + LANES, 0, rest - LANES, activated((high + high1) + (high2 + high3), activation))


@device
def one_row_narrow(
    x: Pointer,
    taps: Pointer,
    T: int,
    K: int,
    w: Pointer,
    bias: Pointer,
    y: Pointer,
    rest: int,
    accumulate: int,
    activation: int,
) -> None:
    """One row against a panel of 16 columns, of which ``rest`` are stored."""
    sum0 = start(vload_part(bias, 0, rest), y, rest, accumulate)
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
        while k < K:
            sum0 = vfma(p[k], vload(w, 0), sum0)
            w = w + LANES
            k += 1
    vstore_part(y, 0, rest, activated((sum0 + sum1) + (sum2 + sum3), activation))


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
    y0: Pointer,
    y1: Pointer,
    y2: Pointer,
    y3: Pointer,
    rest: int,
    accumulate: int,
    activation: int,
) -> None:
    """Four rows against a panel of 32 columns, of which ``rest`` are stored."""
    low, high, more = vload_part(bias, 0, rest), vload_part(bias + LANES, 0, rest - LANES), rest - LANES
    low0, high0 = start(low, y0, rest, accumulate), start(high, y0 + LANES, more, accumulate)
    low1, high1 = start(low, y1, rest, accumulate), start(high, y1 + LANES, more, accumulate)
    low2, high2 = start(low, y2, rest, accumulate), start(high, y2 + LANES, more, accumulate)
    low3, high3 = start(low, y3, rest, accumulate), start(high, y3 + LANES, more, accumulate)
    for t in range(T):
        tap = taps[t]
        p0, p1, p2, p3 = x0 + tap, x1 + tap, x2 + tap, x3 + tap
        for k in range(K):
            left, right = vload(w, 0), vload(w, 16)
            a, b, c, d = vsplat(p0[k]), vsplat(p1[k]), vsplat(p2[k]), vsplat(p3[k])
            low0, high0 = vfma(a, left, low0), vfma(a, right, high0)
            low1, high1 = vfma(b, left, low1), vfma(b, right, high1)
            low2, high2 = vfma(c, left, low2), vfma(c, right, high2)
            low3, high3 = vfma(d, left, low3), vfma(d, right, high3)
            w = w + PANEL
    vstore_part(y0, 0, rest, activated(low0, activation))
    vstore_part(y1, 0, rest, activated(low1, activation))
    vstore_part(y2, 0, rest, activated(low2, activation))
    vstore_part(y3, 0, rest, activated(low3, activation))
    vstore_part(y0 + LANES, 0, more, activated(high0, activation))
    vstore_part(y1 + LANES, 0, more, activated(high1, activation))
    vstore_part(y2 + LANES, 0, more, activated(high2, activation))
    vstore_part(y3 + LANES, 0, more, activated(high3, activation))


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
    y0: Pointer,
    y1: Pointer,
    y2: Pointer,
    y3: Pointer,
    rest: int,
    accumulate: int,
    activation: int,
) -> None:
    """Four rows against a panel of 16 columns, of which ``rest`` are stored."""
    first = vload_part(bias, 0, rest)
    sum0, sum1 = start(first, y0, rest, accumulate), start(first, y1, rest, accumulate)
    sum2, sum3 = start(first, y2, rest, accumulate), start(first, y3, rest, accumulate)
    for t in range(T):
        tap = taps[t]
        p0, p1, p2, p3 = x0 + tap, x1 + tap, x2 + tap, x3 + tap
        for k in range(K):
            column = vload(w, 0)
            sum0, sum1 = vfma(p0[k], column, sum0), vfma(p1[k], column, sum1)
            sum2, sum3 = vfma(p2[k], column, sum2), vfma(p3[k], column, sum3)
            w = w + LANES
    vstore_part(y0, 0, rest, activated(sum0, activation))
    vstore_part(y1, 0, rest, activated(sum1, activation))
    vstore_part(y2, 0, rest, activated(sum2, activation))
    vstore_part(y3, 0, rest, activated(sum3, activation))


@kernel
def product(row: Row, bases: Bases) -> None:
    """y[rows_y[m] + n] = act(bias[n] + sum_tk x[rows_x[m] + taps[t] + k] * W[t*K + k, n] (+ y[...])), f32.

    Arguments: x, W (from ``pack_product``), bias, y, M, rows_x, rows_y, T, taps, K, N, accumulate (0 or 1),
    activation (0 none, 1 relu), its parameter (a real, not used yet). Weights are read once per four rows.
    """
    x, weights, bias, y = f32(row, bases, 0), f32(row, bases, 1), f32(row, bases, 2), f32(row, bases, 3)
    M, rows_x, rows_y, T = number(row, 4), i64(row, bases, 5), i64(row, bases, 6), number(row, 7)
    taps, K, N = i64(row, bases, 8), number(row, 9), number(row, 10)
    accumulate, activation = number(row, 11), number(row, 12)
    n = 0
    while n < N:
        w, rest = weights + n * T * K, N - n
        m = 0
        while m + 3 <= M:
            last = min(m + 3, M - 1)  # the last block of three does its third row twice
            x0, x1, x2, x3 = x + rows_x[m], x + rows_x[m + 1], x + rows_x[m + 2], x + rows_x[last]
            y0, y1, y2, y3 = y + rows_y[m], y + rows_y[m + 1], y + rows_y[m + 2], y + rows_y[last]
            y0, y1, y2, y3 = y0 + n, y1 + n, y2 + n, y3 + n
            if rest > LANES:
                four_rows_wide(
                    x0, x1, x2, x3, taps, T, K, w, bias + n, y0, y1, y2, y3, rest, accumulate, activation
                )
            else:
                four_rows_narrow(
                    x0, x1, x2, x3, taps, T, K, w, bias + n, y0, y1, y2, y3, rest, accumulate, activation
                )
            m += 4
        while m < M:
            x0, y0 = x + rows_x[m], y + rows_y[m] + n
            if rest > LANES:
                one_row_wide(x0, taps, T, K, w, bias + n, y0, rest, accumulate, activation)
            else:
                one_row_narrow(x0, taps, T, K, w, bias + n, y0, rest, accumulate, activation)
            m += 1
        n += PANEL


@lanes_of(product)
def product_lanes(row: Row, bases: Bases) -> None:
    """``product`` for several streams: weights are read once per four of them."""
    weights, bias = f32(row, bases, 1), f32(row, bases, 2)
    M, rows_x, rows_y, T = number(row, 4), i64(row, bases, 5), i64(row, bases, 6), number(row, 7)
    taps, K, N = i64(row, bases, 8), number(row, 9), number(row, 10)
    accumulate, activation, L = number(row, 11), number(row, 12), lane_count(bases)
    n = 0
    while n < N:
        w, rest, b = weights + n * T * K, N - n, bias + n
        for m in range(M):
            l = 0
            while l + 2 <= L:
                b0, b1 = lane(bases, l), lane(bases, l + 1)
                b2, b3 = lane(bases, min(l + 2, L - 1)), lane(bases, min(l + 3, L - 1))
                at_x, at_y = rows_x[m], rows_y[m] + n
                x0, x1 = f32(row, b0, 0) + at_x, f32(row, b1, 0) + at_x
                x2, x3 = f32(row, b2, 0) + at_x, f32(row, b3, 0) + at_x
                y0, y1 = f32(row, b0, 3) + at_y, f32(row, b1, 3) + at_y
                y2, y3 = f32(row, b2, 3) + at_y, f32(row, b3, 3) + at_y
                if rest > LANES:
                    four_rows_wide(
                        x0, x1, x2, x3, taps, T, K, w, b, y0, y1, y2, y3, rest, accumulate, activation
                    )
                else:
                    four_rows_narrow(
                        x0, x1, x2, x3, taps, T, K, w, b, y0, y1, y2, y3, rest, accumulate, activation
                    )
                l += GROUP
            if l < L:
                x0, y0 = f32(row, lane(bases, l), 0) + rows_x[m], f32(row, lane(bases, l), 3) + rows_y[m] + n
                if rest > LANES:
                    one_row_wide(x0, taps, T, K, w, b, y0, rest, accumulate, activation)
                else:
                    one_row_narrow(x0, taps, T, K, w, b, y0, rest, accumulate, activation)
        n += PANEL


@device
def one_row_columns(p: Pointer, q: Pointer, z: Pointer, K: int, rest: int, ak: int, bk: int) -> None:
    """One row against 16 columns, of which ``rest`` are loaded and stored."""
    sum0, sum1, sum2, sum3 = vzero(), vzero(), vzero(), vzero()
    k = 0
    while k + 4 <= K:
        sum0 = vfma(p[0], vload_part(q, 0, rest), sum0)
        sum1 = vfma(p[ak], vload_part(q, bk, rest), sum1)
        sum2 = vfma(p[2 * ak], vload_part(q, 2 * bk, rest), sum2)
        sum3 = vfma(p[3 * ak], vload_part(q, 3 * bk, rest), sum3)
        p, q = p + 4 * ak, q + 4 * bk
        k += 4
    while k < K:
        sum0 = vfma(p[0], vload_part(q, 0, rest), sum0)
        p, q = p + ak, q + bk
        k += 1
    vstore_part(z, 0, rest, (sum0 + sum1) + (sum2 + sum3))


@device
def columns_product(
    a: Pointer, b: Pointer, y: Pointer, M: int, K: int, N: int, am: int, ak: int, bk: int, ym: int
) -> None:
    """A product whose columns are neighbours in b and in y: vectors over n, four rows at a time."""
    n = 0
    while n < N:
        rest, z = N - n, y + n
        m = 0
        while m + 2 <= M:
            m2, m3 = min(m + 2, M - 1), min(m + 3, M - 1)  # past the last row: the last one again
            p, q, d1, d2, d3 = a + m * am, b + n, am, (m2 - m) * am, (m3 - m) * am
            sum0, sum1, sum2, sum3 = vzero(), vzero(), vzero(), vzero()
            for _ in range(K):
                right = vload_part(q, 0, rest)
                sum0, sum1 = vfma(p[0], right, sum0), vfma(p[d1], right, sum1)
                sum2, sum3 = vfma(p[d2], right, sum2), vfma(p[d3], right, sum3)
                p, q = p + ak, q + bk
            vstore_part(z, m * ym, rest, sum0)
            vstore_part(z, (m + 1) * ym, rest, sum1)
            vstore_part(z, m2 * ym, rest, sum2)
            vstore_part(z, m3 * ym, rest, sum3)
            m += 4
        if m < M:
            one_row_columns(a + m * am, b + n, z + m * ym, K, rest, ak, bk)
        n += LANES


@device
def depth_product(
    a: Pointer, b: Pointer, y: Pointer, M: int, K: int, N: int, am: int, bn: int, ym: int, yn: int
) -> None:
    """A product whose terms are neighbours in a and in b: vectors over k, four columns at a time."""
    for m in range(M):
        p, z = a + m * am, y + m * ym
        n = 0
        while n < N:
            n1, n2, n3 = min(n + 1, N - 1), min(n + 2, N - 1), min(n + 3, N - 1)
            q0, q1, q2, q3 = b + n * bn, b + n1 * bn, b + n2 * bn, b + n3 * bn
            sum0, sum1, sum2, sum3 = vzero(), vzero(), vzero(), vzero()
            k = 0
            while k + LANES <= K:
                left = vload(p, k)
                sum0, sum1 = vfma(left, vload(q0, k), sum0), vfma(left, vload(q1, k), sum1)
                sum2, sum3 = vfma(left, vload(q2, k), sum2), vfma(left, vload(q3, k), sum3)
                k += LANES
            if k < K:
                rest = K - k
                left = vload_part(p, k, rest)
                sum0, sum1 = (
                    vfma(left, vload_part(q0, k, rest), sum0),
                    vfma(left, vload_part(q1, k, rest), sum1),
                )
                sum2, sum3 = (
                    vfma(left, vload_part(q2, k, rest), sum2),
                    vfma(left, vload_part(q3, k, rest), sum3),
                )
            z[n * yn], z[n1 * yn] = vsum(sum0), vsum(sum1)
            z[n2 * yn], z[n3 * yn] = vsum(sum2), vsum(sum3)
            n += 4


@kernel
def matmul(row: Row, bases: Bases) -> None:
    """y[b_y + m*ym + n*yn] = sum_k a[b_a + m*am + k*ak] * b[b_b + k*bk + n*bn] for each batch, f32.

    Arguments: a, b, y, B, batch_a, batch_b, batch_y (tables of B offsets), M, K, N, am, ak, bk, bn, ym, yn.
    Vectors where bn = yn = 1 or ak = bk = 1, else one product at a time.
    """
    left, right, result = f32(row, bases, 0), f32(row, bases, 1), f32(row, bases, 2)
    B, batch_a, batch_b, batch_y = number(row, 3), i64(row, bases, 4), i64(row, bases, 5), i64(row, bases, 6)
    M, K, N = number(row, 7), number(row, 8), number(row, 9)
    am, ak, bk = number(row, 10), number(row, 11), number(row, 12)
    bn, ym, yn = number(row, 13), number(row, 14), number(row, 15)
    for batch in range(B):
        a, b, y = left + batch_a[batch], right + batch_b[batch], result + batch_y[batch]
        if bn == 1 and yn == 1:
            columns_product(a, b, y, M, K, N, am, ak, bk, ym)
        elif ak == 1 and bk == 1:
            depth_product(a, b, y, M, K, N, am, bn, ym, yn)
        else:
            for m in range(M):
                for n in range(N):
                    total = np.float32(0)
                    for k in range(K):
                        total += a[m * am + k * ak] * b[k * bk + n * bn]
                    y[m * ym + n * yn] = total
