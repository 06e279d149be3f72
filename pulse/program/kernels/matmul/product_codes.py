"""Products of sliding windows with int8 or bf16 weights, in whose form the windows are rounded first.

int8: a row of K elements becomes ``code * row_scale``; the scale is its largest magnitude / 127
(``pulse.ops.quantize_rows``). The sums of products of codes, in int32, are exact, so they are the same for any division
into blocks and on every processor. The instruction needs one unsigned operand: the codes of weights are stored with 128
added, which adds 128 times the sum of the row's codes to a sum.

bf16: two products at a time are added to a sum in f32 (``vdot_halves``). ``scales`` is None. Every block adds the terms
of a column in the same order, so the sums are the same bits for any division too.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.dots import BYTES, vdot_bytes, vdot_halves, vload_words
from pulse.jit.language.raw import as_i32
from pulse.jit.language.simd import (
    LANES,
    Vector,
    vbits,
    vfma,
    vfrombits,
    vload_part,
    vsplat,
    vstore_part,
    vtofloat,
    vtoint,
    vzero,
)
from pulse.jit.language.stack import stack_f32
from pulse.jit.registry import device, exact, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Operand, ScalesOperand, packed_weights, reads, weight_scales
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, run
from pulse.ops.quantize_codes import MAX_ROW, ZERO_CODE
from pulse.program.kernels.matmul.finish import Finish, finish
from pulse.program.kernels.matmul.scales import Scales, offset_scales
from pulse.program.kernels.matmul.windows import ProductFields
from pulse.program.kernels.quantize_rows import ROW_FLOATS, CodedRow, encode_row

ROWS = 4
"""The rows that share one reading of the weights."""
BLOCKS = 4
"""The vectors of a panel."""
PANEL = BLOCKS * LANES
"""The columns that are read together; ``x & -PANEL`` rounds down to whole panels."""
CODE_MEMORY = ROWS * ROW_FLOATS
"""The scratch memory for the codes of these rows, in f32 elements."""


def pack_codes(matrix: NDArray[Any], taps: int) -> NDArray[Any]:
    """Pack codes [T*K, N], int8 or the bits of bf16, as the kernel reads them: words of four or two rows of a column.

    For each tap, panels of 64 columns, then of 16: [words, columns]. K is rounded up to a multiple of four; missing
    codes count as zero.
    """
    depth, columns = matrix.shape[0] // max(1, taps), matrix.shape[1]
    wide, in_word = columns // PANEL * PANEL, BYTES // matrix.itemsize
    if matrix.dtype == np.int8:
        matrix = matrix ^ np.int8(-ZERO_CODE)  # adds ZERO_CODE, as uint8
    missing = -ZERO_CODE if matrix.dtype == np.int8 else 0
    size = (taps, -(-depth // BYTES) * BYTES, -(-columns // LANES) * LANES)
    padded = np.full(size, missing, matrix.dtype)
    padded[:, :depth, :columns] = matrix.reshape(taps, depth, columns)
    parts: list[NDArray[Any]] = [np.zeros(0, matrix.dtype)]
    for tap in padded.reshape(taps, size[1] // in_word, in_word, -1):
        for first, last, width in ((0, wide, PANEL), (wide, tap.shape[2], LANES)):
            panels = tap[:, :, first:last].reshape(*tap.shape[:2], -1, width)
            parts.append(panels.transpose(2, 0, 3, 1).ravel())
    return np.concatenate(parts)


@device
def words_of(K: int, scales: Scales) -> int:
    """Return the number of words of a row."""
    fours = (K + 3) >> 2
    if scales is None:
        return 2 * fours
    return fours


@device
def dot_words(total: Vector, weights: Vector, word: int, scales: Scales) -> Vector:
    """Add the products of a word of a row with the words of 16 columns; sums in f32 are kept as their bits."""
    if scales is None:
        return vbits(vdot_halves(vfrombits(total), weights, word))
    return vdot_bytes(total, weights, word)


@exact
def add_totals(a: Vector, b: Vector, c: Vector, d: Vector, scales: Scales) -> Vector:
    """Add four sums of words."""
    if scales is None:
        return vbits((vfrombits(a) + vfrombits(b)) + (vfrombits(c) + vfrombits(d)))
    return (a + b) + (c + d)


@exact
def add_sum(total: Vector, row_scale: float, scales: Scales, first: Vector, rest: int) -> Vector:
    """Add the value of a sum of words to ``first``; the same bits in every block."""
    if scales is None:
        return vfrombits(total) + first
    return vfma(vtofloat(total), vload_part(scales, 0, rest) * vsplat(row_scale), first)


@device
def first_sum(bias: Pointer, y: Pointer, rest: int, adds: int) -> Vector:
    """Return the first term of a sum: the bias (``adds`` 0), the value in y (1), or both (2)."""
    if adds == 0:
        return vload_part(bias, 0, rest)
    before = vload_part(y, 0, rest)
    return before if adds == 1 else before + vload_part(bias, 0, rest)


@device
def store_sum_of_words(
    total: Vector, row_scale: float, scales: Scales, bias: Pointer, y: Pointer, n: int, N: int, adds: int
) -> None:
    """Store the columns from n."""
    rest = N - n
    first = first_sum(bias + n, y + n, rest, adds)
    vstore_part(y, n, rest, add_sum(total, row_scale, offset_scales(scales, n), first, rest))


@device
def multiply_row_of_codes(
    row: CodedRow, words: int, w: Pointer, scales: Scales, bias: Pointer, y: Pointer, N: int, adds: int
) -> None:
    """Multiply one coded row by one tap; ``adds`` as in ``first_sum``.

    A column of a whole panel has one sum; the last ones have four, each with every fourth word.
    """
    x, row_scale, start = row
    n = 0
    while n + PANEL <= N:
        a, b = vtoint(vzero()) + start, vtoint(vzero()) + start
        c, d = vtoint(vzero()) + start, vtoint(vzero()) + start
        for k in range(words):
            a, b = (
                dot_words(a, vload_words(w, 0), x[k], scales),
                dot_words(b, vload_words(w, 16), x[k], scales),
            )
            c, d = (
                dot_words(c, vload_words(w, 32), x[k], scales),
                dot_words(d, vload_words(w, 48), x[k], scales),
            )
            w = w + PANEL
        store_sum_of_words(a, row_scale, scales, bias, y, n, N, adds)
        store_sum_of_words(b, row_scale, scales, bias, y, n + 16, N, adds)
        store_sum_of_words(c, row_scale, scales, bias, y, n + 32, N, adds)
        store_sum_of_words(d, row_scale, scales, bias, y, n + 48, N, adds)
        n += PANEL
    while n < N:
        a, b = vtoint(vzero()) + start, vtoint(vzero())
        c, d = vtoint(vzero()), vtoint(vzero())
        k = 0
        while k + 4 <= words:
            a, b = (
                dot_words(a, vload_words(w, 0), x[k], scales),
                dot_words(b, vload_words(w, 16), x[k + 1], scales),
            )
            c, d = (
                dot_words(c, vload_words(w, 32), x[k + 2], scales),
                dot_words(d, vload_words(w, 48), x[k + 3], scales),
            )
            w = w + 4 * LANES
            k += 4
        while k < words:
            a = dot_words(a, vload_words(w, 0), x[k], scales)
            w = w + LANES
            k += 1
        store_sum_of_words(add_totals(a, b, c, d, scales), row_scale, scales, bias, y, n, N, adds)
        n += LANES


@device
def multiply_two_blocks(
    p: CodedRow, q: CodedRow, r: CodedRow, s: CodedRow, words: int, w: Pointer,
    scales: Scales, bias: Pointer, y0: Pointer, y1: Pointer, y2: Pointer, y3: Pointer, n: int, N: int, adds: int,
) -> None:  # fmt: skip
    """Multiply four coded rows by the 32 columns from n of a panel."""
    x0, x1, x2, x3 = p[0], q[0], r[0], s[0]
    zero = vtoint(vzero())
    a0, a1, a2, a3 = zero + p[2], zero + q[2], zero + r[2], zero + s[2]
    b0, b1, b2, b3 = a0, a1, a2, a3
    for k in range(words):
        u, v = vload_words(w, 0), vload_words(w, 16)
        a0, b0 = dot_words(a0, u, x0[k], scales), dot_words(b0, v, x0[k], scales)
        a1, b1 = dot_words(a1, u, x1[k], scales), dot_words(b1, v, x1[k], scales)
        a2, b2 = dot_words(a2, u, x2[k], scales), dot_words(b2, v, x2[k], scales)
        a3, b3 = dot_words(a3, u, x3[k], scales), dot_words(b3, v, x3[k], scales)
        w = w + PANEL
    store_sum_of_words(a0, p[1], scales, bias, y0, n, N, adds)
    store_sum_of_words(b0, p[1], scales, bias, y0, n + 16, N, adds)
    store_sum_of_words(a1, q[1], scales, bias, y1, n, N, adds)
    store_sum_of_words(b1, q[1], scales, bias, y1, n + 16, N, adds)
    store_sum_of_words(a2, r[1], scales, bias, y2, n, N, adds)
    store_sum_of_words(b2, r[1], scales, bias, y2, n + 16, N, adds)
    store_sum_of_words(a3, s[1], scales, bias, y3, n, N, adds)
    store_sum_of_words(b3, s[1], scales, bias, y3, n + 16, N, adds)


@device
def multiply_block(
    p: CodedRow, q: CodedRow, r: CodedRow, s: CodedRow, words: int, w: Pointer,
    scales: Scales, bias: Pointer, y0: Pointer, y1: Pointer, y2: Pointer, y3: Pointer, n: int, N: int, adds: int,
) -> None:  # fmt: skip
    """Multiply four coded rows by the last 16 columns or less, in the order of ``multiply_row_of_codes``."""
    x0, x1, x2, x3 = p[0], q[0], r[0], s[0]
    zero, k = vtoint(vzero()), 0
    a0, a1, a2, a3 = zero + p[2], zero + q[2], zero + r[2], zero + s[2]
    b0, b1, b2, b3 = zero, zero, zero, zero
    c0, c1, c2, c3 = zero, zero, zero, zero
    d0, d1, d2, d3 = zero, zero, zero, zero
    while k + 4 <= words:
        u, v = vload_words(w, 0), vload_words(w, 16)
        a0, a1 = dot_words(a0, u, x0[k], scales), dot_words(a1, u, x1[k], scales)
        a2, a3 = dot_words(a2, u, x2[k], scales), dot_words(a3, u, x3[k], scales)
        b0, b1 = dot_words(b0, v, x0[k + 1], scales), dot_words(b1, v, x1[k + 1], scales)
        b2, b3 = dot_words(b2, v, x2[k + 1], scales), dot_words(b3, v, x3[k + 1], scales)
        u, v = vload_words(w, 32), vload_words(w, 48)
        c0, c1 = dot_words(c0, u, x0[k + 2], scales), dot_words(c1, u, x1[k + 2], scales)
        c2, c3 = dot_words(c2, u, x2[k + 2], scales), dot_words(c3, u, x3[k + 2], scales)
        d0, d1 = dot_words(d0, v, x0[k + 3], scales), dot_words(d1, v, x1[k + 3], scales)
        d2, d3 = dot_words(d2, v, x2[k + 3], scales), dot_words(d3, v, x3[k + 3], scales)
        w = w + 4 * LANES
        k += 4
    while k < words:
        u = vload_words(w, 0)
        a0, a1 = dot_words(a0, u, x0[k], scales), dot_words(a1, u, x1[k], scales)
        a2, a3 = dot_words(a2, u, x2[k], scales), dot_words(a3, u, x3[k], scales)
        w = w + LANES
        k += 1
    store_sum_of_words(add_totals(a0, b0, c0, d0, scales), p[1], scales, bias, y0, n, N, adds)
    store_sum_of_words(add_totals(a1, b1, c1, d1, scales), q[1], scales, bias, y1, n, N, adds)
    store_sum_of_words(add_totals(a2, b2, c2, d2, scales), r[1], scales, bias, y2, n, N, adds)
    store_sum_of_words(add_totals(a3, b3, c3, d3, scales), s[1], scales, bias, y3, n, N, adds)


@device
def multiply_four_rows_of_codes(
    p: CodedRow, q: CodedRow, r: CodedRow, s: CodedRow, words: int, w: Pointer,
    scales: Scales, bias: Pointer, y0: Pointer, y1: Pointer, y2: Pointer, y3: Pointer, N: int, adds: int,
) -> None:  # fmt: skip
    """Multiply four coded rows by one tap."""
    n, whole = 0, N & -PANEL
    while n < whole:
        here = w + (n & -PANEL) * words + (n & (PANEL - 1))
        multiply_two_blocks(p, q, r, s, words, here, scales, bias, y0, y1, y2, y3, n, N, adds)
        n += 2 * LANES
    while n < N:
        multiply_block(p, q, r, s, words, w + n * words, scales, bias, y0, y1, y2, y3, n, N, adds)
        n += LANES


def packed_codes_size(elements: int, columns: int) -> int:
    """Return the number of codes of ``pack_codes`` for one tap."""
    return -(-elements // BYTES) * BYTES * -(-columns // LANES) * LANES


class ProductOfCodesRow(ProductFields):
    """y[rows_y[m] + n] = bias[n] + sum_tk c[m, t, k] * row_scale[m, t] * W[t*K + k, n] * scales[n] (+ y[...]), f32;
    then the steps of ``finish``.

    c * row_scale are the elements of x at rows_x[m] + taps[t] as int8 codes (``pulse.ops.quantize_rows``), or as bf16,
    without row_scale and scales; W is from ``pack_codes``.
    """

    rounds_rows = True
    W: Operand = packed_weights()
    bias: Operand = reads("f32", "N")
    scales: ScalesOperand = weight_scales()
    finish: Finish

    def cuts(self) -> Iterator[Cut]:
        """Cut rows, at blocks of four."""
        depth = self.T * self.K
        yield Cut("M", ROWS, {"rows_x": 1, "rows_y": 1, **self.finish.row_moves()}, shared=depth * self.N)

    def reaches(self) -> Iterator[Reach]:
        require(0 < self.K <= MAX_ROW, f"rows of {self.K} elements")
        yield from self.window_reaches(self.K, self.N)
        yield self.W, run(self.T * packed_codes_size(self.K, self.N))
        yield self.scales, run(self.N)
        yield from self.finish.reaches_on(self.y, self.rows_y, self.M, self.N)


@device
def compute_row_of_codes(row: ProductOfCodesRow, x: Pointer, y: Pointer, memory: Pointer) -> None:
    """Compute one row, tap by tap."""
    T, taps, K, N, bias, scales, weights = row.T, row.taps, row.K, row.N, row.bias, row.scales, as_i32(row.W)
    words = words_of(K, scales)
    size = words * ((N + LANES - 1) & -LANES)
    for t in range(T):
        adds = 1 if t > 0 else 2 * row.accumulate
        coded = encode_row(x + taps[t], K, scales, memory)
        multiply_row_of_codes(coded, words, weights + t * size, scales, bias, y, N, adds)


@device
def compute_four_rows_of_codes(
    row: ProductOfCodesRow, x0: Pointer, x1: Pointer, x2: Pointer, x3: Pointer,
    y0: Pointer, y1: Pointer, y2: Pointer, y3: Pointer, memory: Pointer,
) -> None:  # fmt: skip
    """Compute four rows, tap by tap."""
    T, taps, K, N, bias, scales, weights = row.T, row.taps, row.K, row.N, row.bias, row.scales, as_i32(row.W)
    words = words_of(K, scales)
    size = words * ((N + LANES - 1) & -LANES)
    for t in range(T):
        tap, adds = taps[t], 1 if t > 0 else 2 * row.accumulate
        p, q = encode_row(x0 + tap, K, scales, memory), encode_row(x1 + tap, K, scales, memory + ROW_FLOATS)
        r = encode_row(x2 + tap, K, scales, memory + 2 * ROW_FLOATS)
        s = encode_row(x3 + tap, K, scales, memory + 3 * ROW_FLOATS)
        multiply_four_rows_of_codes(
            p, q, r, s, words, weights + t * size, scales, bias, y0, y1, y2, y3, N, adds
        )


@kernel
def product_of_codes(row: ProductOfCodesRow) -> None:
    """Compute four rows at a time."""
    x, y, M, rows_x, rows_y = row.x, row.y, row.M, row.rows_x, row.rows_y
    memory, m = stack_f32(CODE_MEMORY), 0
    while m + ROWS <= M:
        x0, x1, x2, x3 = x + rows_x[m], x + rows_x[m + 1], x + rows_x[m + 2], x + rows_x[m + 3]
        y0, y1, y2, y3 = y + rows_y[m], y + rows_y[m + 1], y + rows_y[m + 2], y + rows_y[m + 3]
        compute_four_rows_of_codes(row, x0, x1, x2, x3, y0, y1, y2, y3, memory)
        m += ROWS
    while m < M:
        compute_row_of_codes(row, x + rows_x[m], y + rows_y[m], memory)
        m += 1
    finish(row.finish, y, rows_y, M, row.N)
