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

from pulse.jit.language.simd import (
    LANES,
    Vector,
    vdeinterleave_even,
    vfma,
    vinterleave_first,
    vinterleave_second,
    vload,
    vload_part,
    vsplat,
    vstore,
    vstore_part,
    vzero,
)
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Instruction, Operand, reads, updates, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import NOTHING, Reach, Span, require, run, table
from pulse.program.kernels.blocks import FOUR, element, first_four
from pulse.program.kernels.matmul.finish import Finish, finish


@device
def gather_points(
    target: Pointer, source: Pointer, offsets: Pointer, scales: Pointer, count: int, run_start: int, size: int
) -> None:
    """Set ``target[n] = source[offsets[n]] * scales[n]``, and zeros from ``count`` up to ``size``.

    If ``run_start`` is not negative, the points before it are zeros, and from it on the offsets are contiguous.
    """
    n = 0
    if run_start >= 0:
        points = source + offsets[run_start]
        while n < run_start:
            vstore_part(target, n, run_start - n, vzero())
            n += LANES
        n = run_start
        while n < count:
            x = vload_part(points, n - run_start, count - n)
            vstore_part(target, n, count - n, x * vload_part(scales, n, count - n))
            n += LANES
    else:
        for i in range(count):
            target[i] = source[offsets[i]] * scales[i]
    n = count
    while n < size:
        vstore_part(target, n, size - n, vzero())
        n += LANES


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
    n = count
    while n < size:
        vstore_part(re, n, size - n, vzero())
        vstore_part(im, n, size - n, vzero())
        n += LANES


@device
def fold_rows(x: Pointer, rows: int, size: int) -> None:
    """Fold x [rows, size]: replace row i by row i + row -i, and row -i by row i - row -i, for 0 < i < rows/2."""
    for i in range(1, (rows + 1) // 2):
        near, far = x + i * size, x + (rows - i) * size
        n = 0
        while n < size:
            a, b = vload_part(near, n, size - n), vload_part(far, n, size - n)
            vstore_part(near, n, size - n, a + b)
            vstore_part(far, n, size - n, a - b)
            n += LANES


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
    """Compute A from N folded real points, four n2 at a time; w and twiddles [.., 2, P]: real and imaginary part."""
    pairs, half = (N1 + 1) // 2 - 1, N1 // 2
    for block in range(0, P, LANES):
        first = vload(w, block)
        n = 0
        while n < N2:
            columns = each(add, n, first_four(N2 - 1 - n))
            real, imaginary = each(mul, each(point, re, 0, columns), first), copies(vzero(), FOUR)
            near, far, v = N2, (N1 - 1) * N2, w + 2 * P + block
            for _ in range(pairs):
                real = each(vfma, each(point, re, near, columns), vload(v, 0), real)
                imaginary = each(vfma, each(point, re, far, columns), vload(v, P), imaginary)
                near, far, v = near + N2, far - N2, v + 2 * P
            if N1 % 2 == 0:
                w_re = vload(w, 2 * P * half + block)
                real = each(vfma, each(point, re, half * N2, columns), w_re, real)
            each(apply_twiddles, a_re, a_im, twiddles, columns, P, block, real, imaginary)
            n += 4


@device
def compute_first_round(
    re: Pointer, im: Pointer, a_re: Pointer, a_im: Pointer, w: Pointer, twiddles: Pointer, N1: int, N2: int, P: int
) -> None:  # fmt: skip
    """Compute A from folded complex points, two n2 at a time."""
    pairs, half = (N1 + 1) // 2 - 1, N1 // 2
    for block in range(0, P, LANES):
        first = vload(w, block)
        n = 0
        while n < N2:
            columns = n, min(n + 1, N2 - 1)
            real, imaginary = (
                each(mul, each(point, re, 0, columns), first),
                each(mul, each(point, im, 0, columns), first),
            )
            less, more = copies(vzero(), columns), copies(vzero(), columns)
            near, far, v = N2, (N1 - 1) * N2, w + 2 * P + block
            for _ in range(pairs):
                w_re, w_im = vload(v, 0), vload(v, P)
                real = each(vfma, each(point, re, near, columns), w_re, real)
                imaginary = each(vfma, each(point, im, near, columns), w_re, imaginary)
                less = each(vfma, each(point, im, far, columns), w_im, less)
                more = each(vfma, each(point, re, far, columns), w_im, more)
                near, far, v = near + N2, far - N2, v + 2 * P
            if N1 % 2 == 0:
                w_re, middle = vload(w, 2 * P * half + block), half * N2
                real = each(vfma, each(point, re, middle, columns), w_re, real)
                imaginary = each(vfma, each(point, im, middle, columns), w_re, imaginary)
            real, imaginary = each(sub, real, less), each(add, imaginary, more)
            each(apply_twiddles, a_re, a_im, twiddles, columns, P, block, real, imaginary)
            n += 2


@device
def store_mirror(x: Pointer, k: int, K2: int, N2: int, P: int, bins: Vector) -> None:
    """Store 16 bins of row N2 - k if it is another one below K2."""
    if k > 0 and N2 - k < K2:
        vstore(x, P * (N2 - k), bins)


@device
def compute_second_round_real(
    a_re: Pointer, a_im: Pointer, x_re: Pointer, w: Pointer, K2: int, N2: int, P: int
) -> None:
    """Compute the real parts of X for the bins below K2*N1 from a folded A; w [N2, N2, 2]: factors of each k2 and n2.

    It computes two k2 and their mirror bins at a time.
    """
    pairs, half = (N2 + 1) // 2 - 1, N2 // 2
    top = min(K2, half + 1)
    for block in range(0, P, LANES):
        k = 0
        while k < top:
            bins = k, min(k + 1, top - 1)
            even, odd = copies(vload(a_re, block), bins), copies(vzero(), bins)
            v, near, far = each(add, w, each(mul, bins, 2 * N2)), P + block, P * (N2 - 1) + block
            for _ in range(pairs):
                v = each(add, v, 2)
                even = each(vfma, each(element, v, 0), vload(a_re, near), even)
                odd = each(vfma, each(element, v, 1), vload(a_im, far), odd)
                near, far = near + P, far - P
            if N2 % 2 == 0:
                even = each(vfma, each(element, v, 2), vload(a_re, P * half + block), even)
            each(vstore, x_re + block, each(mul, bins, P), each(sub, even, odd))
            each(store_mirror, x_re + block, bins, K2, N2, P, each(add, even, odd))
            k += 2


@device
def compute_second_round(
    a_re: Pointer, a_im: Pointer, x_re: Pointer, x_im: Pointer, w: Pointer, K2: int, N2: int, P: int
) -> None:
    """Compute as ``compute_second_round_real``, with the imaginary parts too."""
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


@device
def scatter_bins(
    target: Pointer, source: Pointer, offsets: Pointer, scales: Pointer, count: int, N1: int, P: int, contiguous: int
) -> None:  # fmt: skip
    """Set ``target[offsets[k]] = X[k] * scales[k]``; X [.., P] has N1 bins in a row.

    ``contiguous``: the offsets are contiguous.
    """
    first, row = 0, source
    while first < count:
        bins = min(N1, count - first)
        if contiguous:
            y, k = target + (offsets[0] + first), 0
            while k < bins:
                x = vload_part(row, k, bins - k)
                vstore_part(y, k, bins - k, x * vload_part(scales, first + k, bins - k))
                k += LANES
        else:
            for k in range(first, first + bins):
                target[offsets[k]] = row[k - first] * scales[k]
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


def span_of_points(offsets: Pointer, count: int, run_start: int) -> Span:
    """Return the span of the offsets of points or bins; they are contiguous from ``run_start`` on if it is not -1."""
    if run_start < 0:
        return table(offsets, count)
    require(run_start < count, "contiguous offsets after the last point")
    return table(offsets + run_start, 1) + run(count - run_start)


class FourierRow(Instruction):
    """``X[k] = sum_n x[n] e(n*k / N)`` of M rows; then the steps of ``finish``.

    Inputs and outputs are anywhere, each with factors for its real and imaginary part: R nonzero points are read
    from offsets ``from_…``, K bins are written to offsets ``to_…``. P is N1 rounded up to 16. ``near_re`` is the index
    of a point: from it on, the offsets of real parts are contiguous, and all points before it are zeros; -1 if there is
    none. ``next_re``: the offsets of the bins' real parts are contiguous.
    ``from_pairs``, ``to_pairs``: points or bins are adjacent pairs, each a real and an imaginary part.
    """

    x: Operand = reads("f32")
    y: Operand = writes("f32")
    scratch: Operand = updates("f32")
    M: int
    rows_x: Operand = reads("i64", "M")
    rows_y: Operand = reads("i64", "M")
    R: int
    N1: int
    N2: int
    P: int
    w1: Operand = reads("f32", "N1", 2, "P")
    twiddles: Operand = reads("f32", "N2", 2, "P")
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
    near_re: int
    near_im: int
    next_re: bool
    next_im: bool
    from_pairs: bool
    to_pairs: bool
    columns: int
    finish: Finish

    def multiply_adds(self) -> int:
        """Count both folded rounds, and the twiddle factors between them, for each of P columns."""
        first = self.N1 * self.N2 * (1 + self.has_im)
        second = self.N2 * min(-(-self.K // self.N1), self.N2 // 2 + 1) * (1 + self.wants_im)
        return self.M * self.P * (first + 4 * self.N2 + second)

    def cuts(self) -> Iterator[Cut]:
        scratch = {"scratch": self._scratch()}
        yield Cut("M", 1, {"rows_x": 1, "rows_y": 1, **self.finish.row_moves()}, scratch=scratch)

    def _scratch(self) -> int:
        """Return the number of f32 elements of scratch memory."""
        return 2 * self.N1 * self.N2 + 4 * self.N2 * self.P

    def reaches(self) -> Iterator[Reach]:
        N1, N2, P, R, K = self.N1, self.N2, self.P, self.R, self.K
        require(min(N1, N2) > 0 and P == -(-N1 // LANES) * LANES, "a transform without points")
        require(0 <= R <= N1 * N2 and 0 <= K <= N1 * N2, "more points or bins than the transform has")
        yield self.scratch, run(self._scratch())
        rows_x, rows_y = table(self.rows_x, self.M), table(self.rows_y, self.M)
        if self.from_pairs:
            require(self.has_im and R > 0, "pairs of points that are not complex")
            yield self.x, rows_x + table(self.from_re, 1) + run(2 * R)
        else:
            yield self.x, rows_x + span_of_points(self.from_re, R, self.near_re)
            if self.has_im:
                yield self.x, rows_x + span_of_points(self.from_im, R, self.near_im)
        if self.to_pairs:
            require(self.wants_im and K > 0, "pairs of bins that are not complex")
            yield self.y, rows_y + table(self.to_re, 1) + run(2 * K)
        else:
            yield self.y, rows_y + span_of_points(self.to_re, K, 0 if self.next_re else -1)
            if self.wants_im:
                yield self.y, rows_y + span_of_points(self.to_im, K, 0 if self.next_im else -1)
        yield self.from_im, NOTHING
        yield self.to_im, NOTHING
        yield from self.finish.reaches_on(self.y, self.rows_y, self.M, self.columns)


@device
def transform_points(row: FourierRow, N1: int, N2: int, P: int) -> None:
    """Compute the bins of one row from its points, both in ``scratch``; LLVM knows the offsets of constant lengths."""
    scratch, w1, twiddles, w2, K2 = row.scratch, row.w1, row.twiddles, row.w2, (row.K + N1 - 1) // N1
    N, size = N1 * N2, N2 * P
    re, im, a_re, a_im = scratch, scratch + N, scratch + 2 * N, scratch + 2 * N + size
    x_re, x_im = scratch + 2 * N + 2 * size, scratch + 2 * N + 3 * size
    fold_rows(re, N1, N2)
    if row.has_im:
        fold_rows(im, N1, N2)
        compute_first_round(re, im, a_re, a_im, w1, twiddles, N1, N2, P)
    else:
        compute_first_round_real(re, a_re, a_im, w1, twiddles, N1, N2, P)
    fold_rows(a_re, N2, P)
    fold_rows(a_im, N2, P)
    if row.wants_im:
        compute_second_round(a_re, a_im, x_re, x_im, w2, K2, N2, P)
    else:
        compute_second_round_real(a_re, a_im, x_re, w2, K2, N2, P)


@device
def write_bins(row: FourierRow, target: Pointer, x_re: Pointer, x_im: Pointer, N1: int, P: int) -> None:
    """Write the bins of one row to the target."""
    factors, to_re, K, wants_im = row.factors, row.to_re, row.K, row.wants_im
    if row.to_pairs:
        scatter_pairs(target + to_re[0], x_re, x_im, factors, K, N1, P)
    else:
        if wants_im:  # first, since a bin without an imaginary part may have the place of a real part
            scatter_bins(target, x_im, row.to_im, factors + K, K, N1, P, row.next_im)
        scatter_bins(target, x_re, to_re, factors, K, N1, P, row.next_re)


@kernel
def fourier(row: FourierRow) -> None:
    """Compute row by row; transforms of 256 and 512 points, the sizes of most models, have their own code."""
    x, y, scratch, M, rows_x, rows_y = row.x, row.y, row.scratch, row.M, row.rows_x, row.rows_y
    R, N1, N2, P, from_re, scales = row.R, row.N1, row.N2, row.P, row.from_re, row.scales
    N = N1 * N2
    x_re, x_im = scratch + 2 * (N + N2 * P), scratch + 2 * N + 3 * N2 * P
    for m in range(M):
        source, target = x + rows_x[m], y + rows_y[m]
        if row.from_pairs:
            gather_pairs(scratch, scratch + N, source + from_re[0], scales, R, N)
        else:
            gather_points(scratch, source, from_re, scales, R, row.near_re, N)
            if row.has_im:
                gather_points(scratch + N, source, row.from_im, scales + R, R, row.near_im, N)
        if N1 == LANES and N2 == LANES:
            transform_points(row, LANES, LANES, LANES)
        elif N1 == LANES and N2 == 2 * LANES:
            transform_points(row, LANES, 2 * LANES, LANES)
        elif N1 == LANES:
            transform_points(row, LANES, N2, LANES)
        else:
            transform_points(row, N1, N2, P)
        if N1 == LANES:
            write_bins(row, target, x_re, x_im, LANES, LANES)
        else:
            write_bins(row, target, x_re, x_im, N1, P)
    finish(row.finish, y, rows_y, M, row.columns)
