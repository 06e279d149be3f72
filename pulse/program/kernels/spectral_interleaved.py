"""Fourier transforms for sixteen streams with interleaved memories; see ``spectral``, ``matmul.product_interleaved``.

Both rounds run the same code: the bins of each column of a folded table of points. Bins k and N - k share their sums.
"""

from collections.abc import Iterator
from operator import neg
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.simd import LANES, Vector, vfma, vload, vsplat, vstore, vzero
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Operand, reads
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run, table
from pulse.program.kernels.matmul.epilogue import Epilogue
from pulse.program.kernels.matmul.product_interleaved import finish_rows
from pulse.program.kernels.row_tuples import FOUR, Vectors
from pulse.program.kernels.spectral import FourierFields, fold_rows

SCRATCH_TABLES = 6
"""Scratch tables of all points: real and imaginary parts of the points, the first round's bins, the second round's."""


def angles_last(factors: NDArray[Any], count: int) -> NDArray[np.float32]:
    """Return factors [rows, 2, P], of which ``count`` columns exist, as [rows, count, 2]."""
    return np.ascontiguousarray(factors[:, :, :count].transpose(0, 2, 1), np.float32)


class InterleavedFourierRow(FourierFields):
    """``X[k] = sum_n x[n] e(n*k / N)``, N = N1 * N2, for M rows of sixteen streams; then the steps of ``epilogue``.

    R points are read from offsets ``from_…``, K bins are written to offsets ``to_…``, each with factors for both parts.
    """

    w1: Operand = reads("f32", "N1", "N1", 2)
    twiddles: Operand = reads("f32", "N2", "N1", 2)
    epilogue: Epilogue

    def multiply_adds(self) -> int:
        """Count both folded rounds, and the twiddle factors between them."""
        first = self.N1 * self.N2 * (self.N1 // 2 + 1) * (1 + self.has_im)
        second = self.N1 * self.N2 * min(-(-self.K // self.N1), self.N2 // 2 + 1) * (1 + self.wants_im)
        return LANES * self.M * (first + 4 * self.N1 * self.N2 + second)

    def reaches(self) -> Iterator[Reach]:
        yield from super().reaches()
        R, K = self.R, self.K
        yield self.scratch, run(SCRATCH_TABLES * self.N1 * self.N2 * LANES)
        yield self.x, (table(self.rows_x, self.M) + table(self.from_re, R)) * LANES
        if self.has_im:
            yield self.x, (table(self.rows_x, self.M) + table(self.from_im, R)) * LANES
        yield self.y, (table(self.rows_y, self.M) + table(self.to_re, K)) * LANES
        if self.wants_im:
            yield self.y, (table(self.rows_y, self.M) + table(self.to_im, K)) * LANES
        yield from self.epilogue.reaches_on(self.y, self.rows_y, self.M, self.columns, LANES)


@device
def gather_vectors(
    target: Pointer, source: Pointer, offsets: Pointer, scales: Pointer, count: int, size: int
) -> None:
    """Set ``target[n] = source[offsets[n]] * scales[n]``, and zeros from ``count`` up to ``size``."""
    for n in range(count):
        vstore(target, n * LANES, vload(source, offsets[n] * LANES) * vsplat(scales[n]))
    for n in range(count, size):
        vstore(target, n * LANES, vzero())


@device
def scatter_vectors(target: Pointer, source: Pointer, offsets: Pointer, scales: Pointer, count: int) -> None:
    """Set ``target[offsets[k]] = source[k] * scales[k]``."""
    for k in range(count):
        vstore(target, offsets[k] * LANES, vload(source, k * LANES) * vsplat(scales[k]))


@device
def apply_all_twiddles(re: Pointer, im: Pointer, twiddles: Pointer, count: int) -> None:
    for n in range(count):
        a, b, c, s = vload(re, n * LANES), vload(im, n * LANES), twiddles[2 * n], twiddles[2 * n + 1]
        vstore(re, n * LANES, a * vsplat(c) - b * vsplat(s))
        vstore(im, n * LANES, vfma(a, vsplat(s), b * vsplat(c)))


@device
def even_sums(x: Pointer, v: Pointer, w: Pointer, rows: int, columns: int, n: int, m: int) -> Vectors:
    """Return the cosine sums of columns n and m of a folded x, for the bin with the factors v, then that with w."""
    step = columns * LANES
    p, q = x + n * LANES, x + m * LANES
    a, b, c, d = vzero(), vzero(), vzero(), vzero()
    for _ in range(rows // 2 + 1):
        r, s = vload(p, 0), vload(q, 0)
        a, b = vfma(r, vsplat(v[0]), a), vfma(s, vsplat(v[0]), b)
        c, d = vfma(r, vsplat(w[0]), c), vfma(s, vsplat(w[0]), d)
        p, q, v, w = p + step, q + step, v + 2, w + 2
    return a, b, c, d


@device
def odd_sums(x: Pointer, v: Pointer, w: Pointer, rows: int, columns: int, n: int, m: int) -> Vectors:
    """Return the sine sums, as ``even_sums`` returns the cosine sums."""
    step = columns * LANES
    p, q = x + (rows * step + n * LANES), x + (rows * step + m * LANES)
    a, b, c, d = vzero(), vzero(), vzero(), vzero()
    for _ in range((rows + 1) // 2 - 1):
        p, q, v, w = p + -step, q + -step, v + 2, w + 2
        r, s = vload(p, 0), vload(q, 0)
        a, b = vfma(r, vsplat(v[1]), a), vfma(s, vsplat(v[1]), b)
        c, d = vfma(r, vsplat(w[1]), c), vfma(s, vsplat(w[1]), d)
    return a, b, c, d


@device
def store_bin(
    y: Pointer, rows: int, bins: int, k: int, column: int, step: int, even: Vector, odd: Vector
) -> None:
    """Store one part of bin k of a column, ``even + odd``, and of its mirror bin, ``even - odd``."""
    vstore(y, (column + k * step) * LANES, even + odd)
    if k < rows - k < bins:
        vstore(y, (column + (rows - k) * step) * LANES, even - odd)


@device
def compute_bins_of_columns(
    re: Pointer, im: Pointer, has_im: int, wants_im: int, rows: int, columns: int, w: Pointer, bins: int,
    y_re: Pointer, y_im: Pointer, bin_step: int, column_step: int,
) -> None:  # fmt: skip
    """Compute ``y[k, n] = sum_i x[i, n] e(i*k / rows)``, k < bins, from a folded x [rows, columns]; w [rows, rows, 2].

    It computes two bins of two columns at a time.
    """
    top = min(bins, rows // 2 + 1)
    for k in range(0, top, 2):
        other = min(k + 1, top - 1)
        v, u, numbers = w + 2 * rows * k, w + 2 * rows * other, (k, k, other, other)
        for n in range(0, columns, 2):
            m = min(n + 1, columns - 1)
            places = n * column_step, m * column_step, n * column_step, m * column_step
            even, odd = even_sums(re, v, u, rows, columns, n, m), copies(vzero(), FOUR)
            if has_im:
                odd = odd_sums(im, v, u, rows, columns, n, m)
            each(store_bin, y_re, rows, bins, numbers, places, bin_step, even, each(neg, odd))
            if wants_im:
                even, odd = copies(vzero(), FOUR), odd_sums(re, v, u, rows, columns, n, m)
                if has_im:
                    even = even_sums(im, v, u, rows, columns, n, m)
                each(store_bin, y_im, rows, bins, numbers, places, bin_step, even, odd)


@kernel
def interleaved_fourier(row: InterleavedFourierRow) -> None:
    x, y, M, rows_x, rows_y, R, K = row.x, row.y, row.M, row.rows_x, row.rows_y, row.R, row.K
    N1, N2, w1, twiddles, w2, scales = row.N1, row.N2, row.w1, row.twiddles, row.w2, row.scales
    factors = row.factors
    from_re, from_im, to_re, to_im = row.from_re, row.from_im, row.to_re, row.to_im
    has_im, wants_im, N = row.has_im, row.wants_im, row.N1 * row.N2
    re, size = row.scratch, N * LANES
    im, a_re, a_im, x_re, x_im = re + size, re + 2 * size, re + 3 * size, re + 4 * size, re + 5 * size
    for m in range(M):
        gather_vectors(re, x + rows_x[m] * LANES, from_re, scales, R, N)
        fold_rows(re, N1, N2 * LANES)
        if has_im:
            gather_vectors(im, x + rows_x[m] * LANES, from_im, scales + R, R, N)
            fold_rows(im, N1, N2 * LANES)
        compute_bins_of_columns(re, im, has_im, 1, N1, N2, w1, N1, a_re, a_im, 1, N1)
        apply_all_twiddles(a_re, a_im, twiddles, N)
        fold_rows(a_re, N2, N1 * LANES)
        fold_rows(a_im, N2, N1 * LANES)
        compute_bins_of_columns(a_re, a_im, 1, wants_im, N2, N1, w2, (K + N1 - 1) // N1, x_re, x_im, N1, 1)
        if wants_im:  # first, since a bin without an imaginary part may have the place of a real part
            scatter_vectors(y + rows_y[m] * LANES, x_im, to_im, factors + K, K)
        scatter_vectors(y + rows_y[m] * LANES, x_re, to_re, factors, K)
    finish_rows(row.epilogue, y, rows_y, 0, M, row.columns, 0)
