"""Fourier transforms of any length N = N1 * N2: two rounds of short dense ones, 16 bins at a time.

With n = N2*n1 + n2 and k = k1 + N1*k2:

    A[n2, k1] = e(n2*k1 / N) * sum_n1 x[n] e(n1*k1 / N1),   X[k] = sum_n2 A[n2, k1] e(n2*k2 / N2)

with e(t) = exp(2i pi t). Vectors run over k1, so nothing is transposed. The cosines of n1 and N1 - n1 are the
same, and their sines opposite, so both rounds first *fold* their input: point n1 becomes the sum of the two points,
N1 - n1 their difference, and each sum has half as many terms. In the second round bins k2 and N2 - k2 share their
sums too.
"""

from collections.abc import Iterator
from operator import add, mul, sub

from pulse.jit.language.dispatch import outline
from pulse.jit.language.simd import LANES, Vector, vfma, vload, vsplat, vstore, vzero
from pulse.jit.language.tuples import copies, each
from pulse.jit.registers import HAS_AVX512
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Operand, reads, updates
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import NOTHING, Reach, require, run, table
from pulse.program.kernels.matmul.epilogue import Epilogue, epilogue
from pulse.program.kernels.row_tuples import FOUR, ONE, TWO, Indices, RowsFields, element, number_until
from pulse.program.kernels.spectral_points import (
    gather_pairs,
    gather_points,
    round_up,
    scatter_bins,
    scatter_pairs,
    span_of_points,
)

REAL_COLUMNS: Indices = FOUR if HAS_AVX512 else TWO
COMPLEX_COLUMNS: Indices = TWO if HAS_AVX512 else ONE
"""The columns of real and of complex points that the first round sums together: their sums fit into registers."""


@device
def fold_points(y: Pointer, x: Pointer, rows: int, columns: int, step: int) -> None:
    """Fold points x [rows, columns] into y [rows, step]: row i + row -i in row i, row i - row -i in row -i, i < rows/2.

    Loads and stores are whole vectors, so they read the next row too; the rest of a row of y is not used.
    """
    for n in range(0, columns, LANES):
        vstore(y, n, vload(x, n))
        if rows % 2 == 0:
            vstore(y + rows // 2 * step, n, vload(x + rows // 2 * columns, n))
    for i in range(1, (rows + 1) // 2):
        near, far = x + i * columns, x + (rows - i) * columns
        for n in range(0, columns, LANES):
            a, b = vload(near, n), vload(far, n)
            vstore(y + i * step, n, a + b)
            vstore(y + (rows - i) * step, n, a - b)


@device
def fold_rows(x: Pointer, rows: int, size: int) -> None:
    """Fold x [rows, size], whole vectors, in place, as ``fold_points`` does."""
    for i in range(1, (rows + 1) // 2):
        near, far = x + i * size, x + (rows - i) * size
        for n in range(0, size, LANES):
            a, b = vload(near, n), vload(far, n)
            vstore(near, n, a + b)
            vstore(far, n, a - b)


@device
def apply_twiddles(
    a_re: Pointer, a_im: Pointer, twiddles: Pointer, n2: int, P: int, block: int, re: Vector, im: Vector
) -> None:
    """Compute 16 elements of A: their sums times the twiddle factors."""
    t_re, t_im = vload(twiddles, 2 * P * n2 + block), vload(twiddles, 2 * P * n2 + P + block)
    vstore(a_re, P * n2 + block, re * t_re - im * t_im)
    vstore(a_im, P * n2 + block, vfma(re, t_im, im * t_re))


@device
def point(p: Pointer, row: int, column: int) -> Vector:
    """Return a point in all lanes; ``row`` is the offset of its row."""
    return vsplat(p[row + column])


@device
def compute_first_round_real(
    re: Pointer, a_re: Pointer, a_im: Pointer, w: Pointer, twiddles: Pointer, N1: int, N2: int, P: int
) -> None:
    """Compute A from folded real points, four or two n2 at a time; w and twiddles [.., 2, P]: real, imaginary part."""
    step = round_up(N2)
    pairs, half = (N1 + 1) // 2 - 1, N1 // 2
    for block in range(0, P, LANES):
        first = vload(w, block)
        n = 0
        while n < N2:
            columns = each(number_until, n, N2 - 1, REAL_COLUMNS)
            real, imaginary = each(mul, each(point, re, 0, columns), first), copies(vzero(), columns)
            near, far, v = step, (N1 - 1) * step, w + 2 * P + block
            for _ in range(pairs):
                real = each(vfma, each(point, re, near, columns), vload(v, 0), real)
                imaginary = each(vfma, each(point, re, far, columns), vload(v, P), imaginary)
                near, far, v = near + step, far - step, v + 2 * P
            if N1 % 2 == 0:
                w_re = vload(w, 2 * P * half + block)
                real = each(vfma, each(point, re, half * step, columns), w_re, real)
            each(apply_twiddles, a_re, a_im, twiddles, columns, P, block, real, imaginary)
            n += len(REAL_COLUMNS)


@device
def compute_first_round(
    re: Pointer, im: Pointer, a_re: Pointer, a_im: Pointer, w: Pointer, twiddles: Pointer, N1: int, N2: int, P: int
) -> None:  # fmt: skip
    """Compute A from folded complex points, two or one n2 at a time."""
    step = round_up(N2)
    pairs, half = (N1 + 1) // 2 - 1, N1 // 2
    for block in range(0, P, LANES):
        first = vload(w, block)
        n = 0
        while n < N2:
            columns = each(number_until, n, N2 - 1, COMPLEX_COLUMNS)
            real, imaginary = (
                each(mul, each(point, re, 0, columns), first),
                each(mul, each(point, im, 0, columns), first),
            )
            less, more = copies(vzero(), columns), copies(vzero(), columns)
            near, far, v = step, (N1 - 1) * step, w + 2 * P + block
            for _ in range(pairs):
                w_re, w_im = vload(v, 0), vload(v, P)
                real = each(vfma, each(point, re, near, columns), w_re, real)
                imaginary = each(vfma, each(point, im, near, columns), w_re, imaginary)
                less = each(vfma, each(point, im, far, columns), w_im, less)
                more = each(vfma, each(point, re, far, columns), w_im, more)
                near, far, v = near + step, far - step, v + 2 * P
            if N1 % 2 == 0:
                w_re, middle = vload(w, 2 * P * half + block), half * step
                real = each(vfma, each(point, re, middle, columns), w_re, real)
                imaginary = each(vfma, each(point, im, middle, columns), w_re, imaginary)
            real, imaginary = each(sub, real, less), each(add, imaginary, more)
            each(apply_twiddles, a_re, a_im, twiddles, columns, P, block, real, imaginary)
            n += len(COMPLEX_COLUMNS)


@device
def store_mirror(x: Pointer, k: int, K2: int, N2: int, P: int, bins: Vector) -> None:
    """Store 16 bins of row N2 - k if it is another one below K2."""
    if k > 0 and N2 - k < K2:
        vstore(x, P * (N2 - k), bins)


@device
def compute_second_round_part(
    a: Pointer, b: Pointer, x: Pointer, w: Pointer, K2: int, N2: int, P: int, imaginary: bool
) -> None:
    """Compute one part of X for the bins below K2*N1 from a folded A; w [N2, N2, 2]: factors of each k2 and n2.

    a, b: the same part of A, and the other one. It computes two k2 and their mirror bins at a time.
    """
    pairs, half = (N2 + 1) // 2 - 1, N2 // 2
    top = min(K2, half + 1)
    for block in range(0, P, LANES):
        k = 0
        while k < top:
            bins = k, min(k + 1, top - 1)
            even, odd = copies(vload(a, block), bins), copies(vzero(), bins)
            v, near, far = each(add, w, each(mul, bins, 2 * N2)), P + block, P * (N2 - 1) + block
            for _ in range(pairs):
                v = each(add, v, 2)
                even = each(vfma, each(element, v, 0), vload(a, near), even)
                odd = each(vfma, each(element, v, 1), vload(b, far), odd)
                near, far = near + P, far - P
            if N2 % 2 == 0:
                even = each(vfma, each(element, v, 2), vload(a, P * half + block), even)
            more, less = each(add, even, odd), each(sub, even, odd)
            first, mirror = (more, less) if imaginary else (less, more)
            each(vstore, x + block, each(mul, bins, P), first)
            each(store_mirror, x + block, bins, K2, N2, P, mirror)
            k += 2


@device
def compute_second_round(
    a_re: Pointer, a_im: Pointer, x_re: Pointer, x_im: Pointer, w: Pointer, K2: int, N2: int, P: int
) -> None:
    """Compute as ``compute_second_round_part``, both parts at once."""
    pairs, half = (N2 + 1) // 2 - 1, N2 // 2
    top = min(K2, half + 1)
    for block in range(0, P, LANES):
        k = 0
        while k < top:
            bins = k, min(k + 1, top - 1)
            re, im = copies(vload(a_re, block), bins), copies(vload(a_im, block), bins)
            less, more = copies(vzero(), bins), copies(vzero(), bins)
            v, near, far = each(add, w, each(mul, bins, 2 * N2)), P + block, P * (N2 - 1) + block
            for _ in range(pairs):
                v = each(add, v, 2)
                p, q, cosines = vload(a_re, near), vload(a_im, near), each(element, v, 0)
                re, im = each(vfma, cosines, p, re), each(vfma, cosines, q, im)
                p, q, sines = vload(a_re, far), vload(a_im, far), each(element, v, 1)
                less, more = each(vfma, sines, q, less), each(vfma, sines, p, more)
                near, far = near + P, far - P
            if N2 % 2 == 0:
                p, q, middle = (
                    vload(a_re, P * half + block),
                    vload(a_im, P * half + block),
                    each(element, v, 2),
                )
                re, im = each(vfma, middle, p, re), each(vfma, middle, q, im)
            each(vstore, x_re + block, each(mul, bins, P), each(sub, re, less))
            each(vstore, x_im + block, each(mul, bins, P), each(add, im, more))
            each(store_mirror, x_re + block, bins, K2, N2, P, each(add, re, less))
            each(store_mirror, x_im + block, bins, K2, N2, P, each(sub, im, more))
            k += 2


class FourierFields(RowsFields):
    """The common fields of transforms; see ``FourierRow``."""

    scratch: Operand = updates("f32")
    R: int
    N1: int
    N2: int
    w2: Operand = reads("f32", "N2", "N2", 2)
    from_re: Operand = reads("i64")
    from_im: Operand = reads("i64")
    scales: Operand = reads("f32", 2, "R")
    K: int
    to_re: Operand = reads("i64", "K")
    to_im: Operand = reads("i64")
    factors: Operand = reads("f32", 2, "K")
    has_im: bool
    wants_im: bool
    columns: int

    def reaches(self) -> Iterator[Reach]:
        N1, N2 = self.N1, self.N2
        require(min(N1, N2) > 0, "a transform without points")
        require(
            0 <= self.R <= N1 * N2 and 0 <= self.K <= N1 * N2, "more points or bins than the transform has"
        )
        yield self.from_im, NOTHING
        yield self.to_im, NOTHING


class FourierRow(FourierFields):
    """``X[k] = sum_n x[n] e(n*k / N)``, N = N1 * N2, of M rows; then the steps of ``epilogue``.

    Inputs and outputs are anywhere, each with factors for its real and imaginary part: R points are read from offsets
    ``from_…``, K bins are written to offsets ``to_…``. P is N1 rounded up to 16. If ``stop_re`` is not 0, the real
    parts of points have contiguous offsets from ``first_re`` up to it, and all others are zeros. ``next_re`` is the
    number of bins, from the first one, whose real parts have contiguous offsets. The same for imaginary parts:
    ``…_im``; ``has_im``, ``wants_im``: the points, the bins have them. Rows of y have ``columns`` elements.
    ``from_pairs``, ``to_pairs``: points or bins are adjacent pairs, each a real and an imaginary part.
    """

    P: int
    w1: Operand = reads("f32", "N1", 2, "P")
    twiddles: Operand = reads("f32", "N2", 2, "P")
    first_re: int
    stop_re: int
    first_im: int
    stop_im: int
    next_re: int
    next_im: int
    from_pairs: bool
    to_pairs: bool
    epilogue: Epilogue

    def multiply_adds(self) -> int:
        """Count both folded rounds, and the twiddle factors between them, for each of P columns."""
        first = self.N1 * self.N2 * (1 + self.has_im)
        second = self.N2 * min(-(-self.K // self.N1), self.N2 // 2 + 1) * (1 + self.wants_im)
        return self.M * self.P * (first + 4 * self.N2 + second)

    def cuts(self) -> Iterator[Cut]:
        scratch = {"scratch": self._scratch()}
        yield Cut("M", 1, {"rows_x": 1, "rows_y": 1, **self.epilogue.row_moves()}, scratch=scratch)

    def _scratch(self) -> int:
        return count_scratch(self.N1, self.N2)

    def reaches(self) -> Iterator[Reach]:
        yield from super().reaches()
        R, K = self.R, self.K
        require(self.P == -(-self.N1 // LANES) * LANES, "columns that are not those of the transform")
        yield self.scratch, run(self._scratch())
        rows_x, rows_y = table(self.rows_x, self.M), table(self.rows_y, self.M)
        if self.from_pairs:
            require(self.has_im and R > 0, "pairs of points that are not complex")
            yield self.x, rows_x + table(self.from_re, 1) + run(2 * R)
        else:
            yield self.x, rows_x + span_of_points(self.from_re, R, self.first_re, self.stop_re)
            if self.has_im:
                yield self.x, rows_x + span_of_points(self.from_im, R, self.first_im, self.stop_im)
        if self.to_pairs:
            require(self.wants_im and K > 0, "pairs of bins that are not complex")
            yield self.y, rows_y + table(self.to_re, 1) + run(2 * K)
        else:
            yield from self._reaches_of_bins(self.to_re, self.next_re)
            if self.wants_im:
                yield from self._reaches_of_bins(self.to_im, self.next_im)
        yield from self.epilogue.reaches_on(self.y, self.rows_y, self.M, self.columns)

    def _reaches_of_bins(self, offsets: Pointer, stop: int) -> Iterator[Reach]:
        require(0 <= stop <= self.K, "contiguous offsets that are not those of bins")
        rows_y = table(self.rows_y, self.M)
        yield self.y, rows_y + table(offsets, 1) + run(stop)
        yield self.y, rows_y + table(offsets + stop, self.K - stop)


@device
def count_points(N1: int, N2: int) -> int:
    """Return the number of f32 elements for the points of one part, read in whole vectors from any of them."""
    return round_up(N1 * N2) + LANES


@device
def count_bins(N1: int, N2: int) -> int:
    """Return the number of f32 elements for the folded points of one part, and then for its bins."""
    return max(N1 * round_up(N2), N2 * round_up(N1))


def count_scratch(N1: int, N2: int) -> int:
    """Return the number of f32 elements of scratch memory: points, A, and folded points or bins, each in two parts."""
    return 2 * (count_points(N1, N2) + N2 * round_up(N1) + count_bins(N1, N2))


@device
def transform_points(row: FourierRow, N1: int, N2: int, P: int) -> None:
    """Compute the bins of one row from its points, both in ``scratch``; LLVM knows the offsets of constant lengths."""
    w1, twiddles, w2, K2 = row.w1, row.twiddles, row.w2, (row.K + N1 - 1) // N1
    re, part = row.scratch, count_points(N1, N2)
    im, a_re, a_im = re + part, re + 2 * part, re + 2 * part + N2 * P
    x_re, x_im = bins_of(row, N1, N2, P)
    fold_points(x_re, re, N1, N2, round_up(N2))
    if row.has_im:
        fold_points(x_im, im, N1, N2, round_up(N2))
        compute_first_round(x_re, x_im, a_re, a_im, w1, twiddles, N1, N2, P)
    else:
        compute_first_round_real(x_re, a_re, a_im, w1, twiddles, N1, N2, P)
    fold_rows(a_re, N2, P)
    fold_rows(a_im, N2, P)
    if row.wants_im and HAS_AVX512:
        compute_second_round(a_re, a_im, x_re, x_im, w2, K2, N2, P)
    else:
        compute_second_round_part(a_re, a_im, x_re, w2, K2, N2, P, False)
        if row.wants_im:
            compute_second_round_part(a_im, a_re, x_im, w2, K2, N2, P, True)


@device
def bins_of(row: FourierRow, N1: int, N2: int, P: int) -> tuple[Pointer, Pointer]:
    """Return where the real and imaginary parts of bins are in ``scratch``."""
    x_re = row.scratch + 2 * (count_points(N1, N2) + N2 * P)
    return x_re, x_re + count_bins(N1, N2)


@device
def write_bins(row: FourierRow, target: Pointer, N1: int, N2: int, P: int) -> None:
    factors, to_re, K, wants_im = row.factors, row.to_re, row.K, row.wants_im
    x_re, x_im = bins_of(row, N1, N2, P)
    if row.to_pairs:
        scatter_pairs(target + to_re[0], x_re, x_im, factors, K, N1, P)
    else:
        if wants_im:  # first, since a bin without an imaginary part may have the place of a real part
            scatter_bins(target, x_im, row.to_im, factors + K, K, row.next_im, N1, P)
        scatter_bins(target, x_re, to_re, factors, K, row.next_re, N1, P)


@device
def transform_row(row: FourierRow, m: int, N1: int, N2: int, P: int) -> None:
    """Compute row m; LLVM knows the offsets and loops of constant lengths."""
    source, target, R, N = row.x + row.rows_x[m], row.y + row.rows_y[m], row.R, N1 * N2
    re, im, from_re, scales = row.scratch, row.scratch + count_points(N1, N2), row.from_re, row.scales
    if row.from_pairs:
        gather_pairs(re, im, source + from_re[0], scales, R, N)
    else:
        gather_points(re, source, from_re, scales, R, row.first_re, row.stop_re, N)
        if row.has_im:
            gather_points(im, source, row.from_im, scales + R, R, row.first_im, row.stop_im, N)
    transform_points(row, N1, N2, P)
    write_bins(row, target, N1, N2, P)


@outline
def transform_256_points(row: FourierRow, m: int) -> None:
    transform_row(row, m, LANES, LANES, LANES)


@outline
def transform_512_points(row: FourierRow, m: int) -> None:
    transform_row(row, m, LANES, 2 * LANES, LANES)


@outline
def transform_lanes_of_points(row: FourierRow, m: int) -> None:
    transform_row(row, m, LANES, row.N2, LANES)


@outline
def transform_any_points(row: FourierRow, m: int) -> None:
    transform_row(row, m, row.N1, row.N2, row.P)


@kernel
def fourier(row: FourierRow) -> None:
    """Compute row by row; transforms of 256 and 512 points, the sizes of most models, have their own code."""
    N1, N2 = row.N1, row.N2
    for m in range(row.M):
        if N1 == LANES and N2 == LANES:
            transform_256_points(row, m)
        elif N1 == LANES and N2 == 2 * LANES:
            transform_512_points(row, m)
        elif N1 == LANES:
            transform_lanes_of_points(row, m)
        else:
            transform_any_points(row, m)
    epilogue(row.epilogue, row.y, row.rows_y, row.M, row.columns)
