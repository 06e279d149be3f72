"""Fourier transforms of any length N = N1 * N2: two rounds of short dense ones, 16 bins at a time.

With n = N2*n1 + n2 and k = k1 + N1*k2:

    A[n2, k1] = e(n2*k1 / N) * sum_n1 x[n] e(n1*k1 / N1),   X[k] = sum_n2 A[n2, k1] e(n2*k2 / N2)

with e(t) = exp(2i pi t). Lanes are k1, in both rounds, so nothing is transposed.
"""

from pulse.program.kernels.finish import finish
from pulse.program.kernels.pointer import Bases, Pointer, Row, f32, i64, number
from pulse.program.kernels.registry import device, kernel
from pulse.program.kernels.simd import LANES, vfma, vload, vsplat, vstore, vzero


@device
def gathered(target: Pointer, source: Pointer, places: Pointer, scales: Pointer, count: int) -> None:
    """``target[n] = source[places[n]] * scales[n]``."""
    for n in range(count):
        target[n] = source[places[n]] * scales[n]


@device
def first_round(
    re: Pointer, im: Pointer, a_re: Pointer, a_im: Pointer, w: Pointer, turns: Pointer,
    R: int, N1: int, N2: int, P: int, has_im: int,
) -> None:  # fmt: skip
    """A of R points, of which the others are zeros; w and turns [.., 2, P]: real and imaginary part."""
    for block in range(0, P, LANES):
        for n2 in range(N2):
            count = (R - n2 + N2 - 1) // N2 if n2 < R else 0
            sum_re, sum_im, more_re, more_im = vzero(), vzero(), vzero(), vzero()
            at, v = n2, w + block
            for _ in range(count):
                w_re, w_im = vload(v, 0), vload(v, P)
                x = vsplat(re[at])
                sum_re, sum_im = vfma(x, w_re, sum_re), vfma(x, w_im, sum_im)
                if has_im:
                    y = vsplat(im[at])
                    more_re, more_im = vfma(y, w_im, more_re), vfma(y, w_re, more_im)
                at += N2
                v = v + 2 * P
            sum_re, sum_im = sum_re - more_re, sum_im + more_im
            t_re, t_im = vload(turns, 2 * P * n2 + block), vload(turns, 2 * P * n2 + P + block)
            vstore(a_re, P * n2 + block, sum_re * t_re - sum_im * t_im)
            vstore(a_im, P * n2 + block, vfma(sum_re, t_im, sum_im * t_re))


@device
def second_round(
    a_re: Pointer, a_im: Pointer, x_re: Pointer, x_im: Pointer, w: Pointer, K2: int, N1: int, N2: int, P: int,
    wants_im: int,
) -> None:  # fmt: skip
    """X of the bins below K2*N1; w [N2, N2, 2]: for each k2 the factor of each n2."""
    for block in range(0, P, LANES):
        for k2 in range(K2):
            sum_re, sum_im, more_re, more_im = vzero(), vzero(), vzero(), vzero()
            v, at = w + 2 * N2 * k2, block
            for _ in range(N2):
                p, q = vload(a_re, at), vload(a_im, at)
                c, s = vsplat(v[0]), vsplat(v[1])
                sum_re, more_re = vfma(c, p, sum_re), vfma(s, q, more_re)
                if wants_im:
                    sum_im, more_im = vfma(c, q, sum_im), vfma(s, p, more_im)
                v, at = v + 2, at + P
            vstore(x_re, P * k2 + block, sum_re - more_re)
            if wants_im:
                vstore(x_im, P * k2 + block, sum_im + more_im)


@device
def scattered(
    target: Pointer, source: Pointer, places: Pointer, scales: Pointer, count: int, N1: int, P: int
) -> None:
    """``target[places[k]] = X[k] * scales[k]``, where X [.., P] has N1 bins in each row."""
    first, row = 0, source
    while first < count:
        for k in range(first, min(first + N1, count)):
            target[places[k]] = row[k - first] * scales[k]
        first, row = first + N1, row + P


@kernel
def fourier(row: Row, bases: Bases) -> None:
    """``X[k] = sum_n x[n] e(n*k / N)`` of M rows; inputs and outputs anywhere, each with a factor.

    Arguments: x, y, scratch (f32, 2*R + 4*N2*P), M, rows_x, rows_y (tables of M offsets), R (points that are not
    zero), N1, N2, P (N1 rounded up to 16), w1 (f32 [N1, 2, P]), turns (f32 [N2, 2, P]), w2 (f32 [N2, N2, 2]),
    from_re, from_im (tables of R offsets), factors of both (f32 [2, R]), K (bins), to_re, to_im (tables of K offsets),
    factors of both (f32 [2, K]), whether there are imaginary parts of the input, of the output (0, 1); columns of y,
    and the steps of ``finish``.
    """
    x, y, scratch = f32(row, bases, 0), f32(row, bases, 1), f32(row, bases, 2)
    M, rows_x, rows_y, R = number(row, 3), i64(row, bases, 4), i64(row, bases, 5), number(row, 6)
    N1, N2, P = number(row, 7), number(row, 8), number(row, 9)
    w1, turns, w2 = f32(row, bases, 10), f32(row, bases, 11), f32(row, bases, 12)
    from_re, from_im, scales = i64(row, bases, 13), i64(row, bases, 14), f32(row, bases, 15)
    K, to_re, to_im, factors = number(row, 16), i64(row, bases, 17), i64(row, bases, 18), f32(row, bases, 19)
    has_im, wants_im = number(row, 20), number(row, 21)
    re, im, size = scratch, scratch + R, N2 * P
    a_re, a_im = scratch + 2 * R, scratch + 2 * R + size
    x_re, x_im = scratch + 2 * R + 2 * size, scratch + 2 * R + 3 * size
    for m in range(M):
        gathered(re, x + rows_x[m], from_re, scales, R)
        if has_im:
            gathered(im, x + rows_x[m], from_im, scales + R, R)
        first_round(re, im, a_re, a_im, w1, turns, R, N1, N2, P, has_im)
        second_round(a_re, a_im, x_re, x_im, w2, (K + N1 - 1) // N1, N1, N2, P, wants_im)
        scattered(y + rows_y[m], x_re, to_re, factors, K, N1, P)
        if wants_im:
            scattered(y + rows_y[m], x_im, to_im, factors + K, K, N1, P)
    finish(row, bases, 23, y, rows_y, M, number(row, 22))
