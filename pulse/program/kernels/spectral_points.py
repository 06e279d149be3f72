"""The points that a Fourier transform reads, and the bins that it writes, wherever they are in memory."""

from pulse.jit.language.simd import (
    LANES,
    vdeinterleave_even,
    vinterleave_first,
    vinterleave_second,
    vload,
    vload_part,
    vstore,
    vstore_part,
    vzero,
)
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Span, require, run, table


@device
def round_up(count: int) -> int:
    """Return the number of elements of the whole vectors that have ``count``."""
    return (count + LANES - 1) // LANES * LANES


@device
def fill_zeros(target: Pointer, start: int, size: int) -> None:
    """Write zeros from ``target[start]`` in whole vectors until ``size`` is reached; a vector may go beyond it."""
    for n in range(start, size, LANES):
        vstore(target, n, vzero())


@device
def gather_points(
    target: Pointer, source: Pointer, offsets: Pointer, scales: Pointer, count: int, first: int, stop: int, size: int
) -> None:  # fmt: skip
    """Set ``target[n] = source[offsets[n]] * scales[n]``, and zeros from ``count`` up to ``size``, in whole vectors.

    If ``stop`` is not 0, the offsets of the points from ``first`` up to it are contiguous, and all others are zeros.
    """
    if stop > 0:
        fill_zeros(target, 0, first)
        points, n = source + offsets[first], first
        while n < stop:
            vstore(target, n, vload_part(points, n - first, stop - n) * vload_part(scales, n, stop - n))
            n += LANES
        fill_zeros(target, n, size)
    else:
        for i in range(count):
            target[i] = source[offsets[i]] * scales[i]
        fill_zeros(target, count, size)


@device
def gather_pairs(re: Pointer, im: Pointer, source: Pointer, scales: Pointer, count: int, size: int) -> None:
    """Set ``re[n] = source[2*n] * scales[n]`` and im to the elements between them, as ``gather_points`` does."""
    n, pairs = 0, source
    while n + LANES <= count:
        a, b = vload(pairs, 0), vload(pairs, LANES)
        c, d = vload(pairs, 1), vload_part(pairs, LANES + 1, LANES - 1)
        vstore(re, n, vdeinterleave_even(a, b) * vload(scales, n))
        vstore(im, n, vdeinterleave_even(c, d) * vload(scales, count + n))
        n, pairs = n + LANES, pairs + 2 * LANES
    for i in range(n, count):
        re[i], im[i] = source[2 * i] * scales[i], source[2 * i + 1] * scales[count + i]
    fill_zeros(re, count, size)
    fill_zeros(im, count, size)


@device
def scatter_bins(
    target: Pointer, source: Pointer, offsets: Pointer, scales: Pointer, count: int, stop: int, N1: int, P: int
) -> None:  # fmt: skip
    """Set ``target[offsets[k]] = X[k] * scales[k]``; X [.., P] has N1 bins in a row.

    The offsets of the first ``stop`` bins are contiguous.
    """
    first, row = 0, source
    while first < count:
        bins, y, k = min(N1, count - first), target + (offsets[0] + first), 0
        near = min(bins, stop - first)
        while k < near:
            x = vload(row, k) * vload_part(scales, first + k, near - k)
            vstore_part(y, k, near - k, x)
            k += LANES
        for i in range(max(near, 0), bins):
            target[offsets[first + i]] = row[i] * scales[first + i]
        first, row = first + N1, row + P


@device
def scatter_pairs(
    target: Pointer, re: Pointer, im: Pointer, scales: Pointer, count: int, N1: int, P: int
) -> None:  # fmt: skip
    """Set ``target[2*k] = re[k] * scales[k]`` and the elements between them to im, as ``scatter_bins`` does."""
    first, row = 0, 0
    while first < count:
        y, bins, k = target + 2 * first, min(N1, count - first), 0
        while k < bins:
            rest = bins - k
            a = vload_part(re, row + k, rest) * vload_part(scales, first + k, rest)
            b = vload_part(im, row + k, rest) * vload_part(scales, count + first + k, rest)
            vstore_part(y, 2 * k, 2 * rest, vinterleave_first(a, b))
            if 2 * rest > LANES:
                vstore_part(y, 2 * k + LANES, 2 * rest - LANES, vinterleave_second(a, b))
            k += LANES
        first, row = first + N1, row + P


def span_of_points(offsets: Pointer, count: int, first: int, stop: int) -> Span:
    """Return the span of the offsets of points, which are contiguous from ``first`` up to ``stop`` if it is not 0."""
    if stop == 0:
        return table(offsets, count)
    require(0 <= first < stop <= count, "contiguous offsets that are not those of points")
    return table(offsets + first, 1) + run(stop - first)
