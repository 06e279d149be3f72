"""Products of sliding windows, as int8 codes, with int8 weights: sums of products of bytes, in int32.

A row of K elements becomes ``code * unit``, with a unit from its largest magnitude (``pulse.ops.quantize_rows``). The
sums of products of codes are exact, so they are the same for any division into blocks and on every processor. The
instruction needs one unsigned operand: the codes of weights are stored with 128 added, which adds 128 times the sum of
the row's codes to a sum.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.byte_dots import BYTES, vdot_bytes, vload_words
from pulse.jit.language.simd import (
    LANES,
    Vector,
    vfma,
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
from pulse.jit.rows.instruction import Operand, reads
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, run
from pulse.ops.quantize_rows import LARGEST_ROW, ZERO_CODE
from pulse.program.kernels.matmul_finish import Finish, finish
from pulse.program.kernels.matmul_windows import ProductRows
from pulse.program.kernels.quantize_rows import ROW_FLOATS, CodedRow, encode_row

ROWS = 4
BLOCKS = 4
PANEL = BLOCKS * LANES
"""The columns that are read together; ``x & -PANEL`` rounds down to whole panels."""
CODE_MEMORY = ROWS * ROW_FLOATS


def words_of(elements: int) -> int:
    """Return the number of words of four codes in a row."""
    return -(-elements // BYTES)


def pack_codes(matrix: NDArray[np.int8], taps: int) -> NDArray[np.int32]:
    """Pack codes [T*K, N] as the kernel reads them: words of four rows of a column.

    For each tap, panels of 64 columns, [K/4, 64], then of 16, [K/4, 16]; missing codes count as zero.
    """
    depth, columns = matrix.shape[0] // max(1, taps), matrix.shape[1]
    words, wide = words_of(depth), columns // PANEL * PANEL
    padded = np.full((taps, words * BYTES, -(-columns // LANES) * LANES), ZERO_CODE, np.uint8)
    padded[:, :depth, :columns] = (matrix.reshape(taps, depth, columns).astype(np.int16) + ZERO_CODE).astype(
        np.uint8
    )
    parts: list[NDArray[Any]] = []
    for tap in padded.reshape(taps, words, BYTES, -1):
        for first, last, width in ((0, wide, PANEL), (wide, tap.shape[2], LANES)):
            panels = tap[:, :, first:last].reshape(words, BYTES, -1, width)
            parts.append(panels.transpose(2, 0, 3, 1).ravel())
    return np.concatenate(parts).view(np.int32) if parts else np.zeros(0, np.int32)


@exact
def add_sum(total: Vector, unit: float, scales: Pointer, first: Vector, rest: int) -> Vector:
    """Add the value of a sum of codes to ``first``; the same bits in every block."""
    return vfma(vtofloat(total), vload_part(scales, 0, rest) * vsplat(unit), first)


@device
def first_sum(bias: Pointer, y: Pointer, rest: int, adds: int) -> Vector:
    """Return the first term of a sum: the bias (``adds`` 0), the value in y (1), or both (2)."""
    if adds == 0:
        return vload_part(bias, 0, rest)
    before = vload_part(y, 0, rest)
    return before if adds == 1 else before + vload_part(bias, 0, rest)


@device
def put(
    total: Vector, unit: float, scales: Pointer, bias: Pointer, y: Pointer, n: int, N: int, adds: int
) -> None:
    """Store the columns from n."""
    rest = N - n
    first = first_sum(bias + n, y + n, rest, adds)
    vstore_part(y, n, rest, add_sum(total, unit, scales + n, first, rest))


@device
def one_row_codes(
    row: CodedRow, words: int, w: Pointer, scales: Pointer, bias: Pointer, y: Pointer, N: int, adds: int
) -> None:
    """Multiply one coded row with one tap; ``adds`` as in ``first_sum``."""
    x, unit, start = row
    n = 0
    while n + PANEL <= N:
        a, b = vtoint(vzero()) + start, vtoint(vzero()) + start
        c, d = vtoint(vzero()) + start, vtoint(vzero()) + start
        for k in range(words):
            a, b = vdot_bytes(a, vload_words(w, 0), x[k]), vdot_bytes(b, vload_words(w, 16), x[k])
            c, d = vdot_bytes(c, vload_words(w, 32), x[k]), vdot_bytes(d, vload_words(w, 48), x[k])
            w = w + PANEL
        put(a, unit, scales, bias, y, n, N, adds)
        put(b, unit, scales, bias, y, n + 16, N, adds)
        put(c, unit, scales, bias, y, n + 32, N, adds)
        put(d, unit, scales, bias, y, n + 48, N, adds)
        n += PANEL
    while n < N:
        a, b = vtoint(vzero()) + start, vtoint(vzero())
        c, d = vtoint(vzero()), vtoint(vzero())
        k = 0
        while k + 4 <= words:
            a, b = vdot_bytes(a, vload_words(w, 0), x[k]), vdot_bytes(b, vload_words(w, 16), x[k + 1])
            c, d = vdot_bytes(c, vload_words(w, 32), x[k + 2]), vdot_bytes(d, vload_words(w, 48), x[k + 3])
            w = w + 4 * LANES
            k += 4
        while k < words:
            a = vdot_bytes(a, vload_words(w, 0), x[k])
            w = w + LANES
            k += 1
        put((a + b) + (c + d), unit, scales, bias, y, n, N, adds)
        n += LANES


@device
def two_blocks_of_four(
    p: CodedRow, q: CodedRow, r: CodedRow, s: CodedRow, words: int, w: Pointer,
    scales: Pointer, bias: Pointer, y0: Pointer, y1: Pointer, y2: Pointer, y3: Pointer, n: int, N: int, adds: int,
) -> None:  # fmt: skip
    """Multiply four coded rows with the 32 columns from n of a panel."""
    x0, x1, x2, x3 = p[0], q[0], r[0], s[0]
    zero = vtoint(vzero())
    a0, a1, a2, a3 = zero + p[2], zero + q[2], zero + r[2], zero + s[2]
    b0, b1, b2, b3 = a0, a1, a2, a3
    for k in range(words):
        u, v = vload_words(w, 0), vload_words(w, 16)
        a0, b0 = vdot_bytes(a0, u, x0[k]), vdot_bytes(b0, v, x0[k])
        a1, b1 = vdot_bytes(a1, u, x1[k]), vdot_bytes(b1, v, x1[k])
        a2, b2 = vdot_bytes(a2, u, x2[k]), vdot_bytes(b2, v, x2[k])
        a3, b3 = vdot_bytes(a3, u, x3[k]), vdot_bytes(b3, v, x3[k])
        w = w + PANEL
    put(a0, p[1], scales, bias, y0, n, N, adds)
    put(b0, p[1], scales, bias, y0, n + 16, N, adds)
    put(a1, q[1], scales, bias, y1, n, N, adds)
    put(b1, q[1], scales, bias, y1, n + 16, N, adds)
    put(a2, r[1], scales, bias, y2, n, N, adds)
    put(b2, r[1], scales, bias, y2, n + 16, N, adds)
    put(a3, s[1], scales, bias, y3, n, N, adds)
    put(b3, s[1], scales, bias, y3, n + 16, N, adds)


@device
def four_rows_codes(
    p: CodedRow, q: CodedRow, r: CodedRow, s: CodedRow, words: int, w: Pointer,
    scales: Pointer, bias: Pointer, y0: Pointer, y1: Pointer, y2: Pointer, y3: Pointer, N: int, adds: int,
) -> None:  # fmt: skip
    """Multiply four coded rows with one tap."""
    n, whole = 0, N & -PANEL
    while n < whole:
        here = w + (n & -PANEL) * words + (n & (PANEL - 1))
        two_blocks_of_four(p, q, r, s, words, here, scales, bias, y0, y1, y2, y3, n, N, adds)
        n += 2 * LANES
    w = w + n * words
    while n < N:
        x0, x1, x2, x3 = p[0], q[0], r[0], s[0]
        zero = vtoint(vzero())
        a0, a1, a2, a3 = zero + p[2], zero + q[2], zero + r[2], zero + s[2]
        for k in range(words):
            u = vload_words(w, 0)
            a0, a1 = vdot_bytes(a0, u, x0[k]), vdot_bytes(a1, u, x1[k])
            a2, a3 = vdot_bytes(a2, u, x2[k]), vdot_bytes(a3, u, x3[k])
            w = w + LANES
        put(a0, p[1], scales, bias, y0, n, N, adds)
        put(a1, q[1], scales, bias, y1, n, N, adds)
        put(a2, r[1], scales, bias, y2, n, N, adds)
        put(a3, s[1], scales, bias, y3, n, N, adds)
        n += LANES


def code_words(elements: int, columns: int) -> int:
    """Return the number of words of ``pack_codes`` for one tap."""
    return words_of(elements) * -(-columns // LANES) * LANES


class ProductOfCodes(ProductRows):
    """y[rows_y[m] + n] = bias[n] + sum_tk c[m, t, k] * unit[m, t] * W[t*K + k, n] * scales[n] (+ y[...]), f32; then the
    steps of ``finish``.

    c * unit are the elements of x at rows_x[m] + taps[t] as int8 codes (``pulse.ops.quantize_rows``), W is from
    ``pack_codes``.
    """

    rounds_rows = True
    W: Operand = reads("i32")
    bias: Operand = reads("f32", "N")
    scales: Operand = reads("f32", "N")
    finish: Finish

    def cuts(self) -> Iterator[Cut]:
        """Cut rows and columns: sums of whole numbers are the same in every part."""
        depth = self.T * self.K
        yield Cut("M", ROWS, {"rows_x": 1, "rows_y": 1, **self.finish.row_moves()}, shared=depth * self.N)

    def reaches(self) -> Iterator[Reach]:
        require(0 < self.K <= LARGEST_ROW, f"rows of {self.K} elements")
        yield from self.window_reaches(self.K, self.N)
        yield self.W, run(self.T * code_words(self.K, self.N))
        yield from self.finish.reaches_on(self.y, self.rows_y, self.M, self.N)


@device
def one_row_of_codes(row: ProductOfCodes, x: Pointer, y: Pointer, memory: Pointer) -> None:
    """Compute one row, tap by tap."""
    T, taps, K, N, weights, bias, scales = row.T, row.taps, row.K, row.N, row.W, row.bias, row.scales
    words = (K + 3) >> 2
    size = words * ((N + LANES - 1) & -LANES)
    for t in range(T):
        adds = 1 if t > 0 else 2 * row.accumulate
        coded = encode_row(x + taps[t], K, memory)
        one_row_codes(coded, words, weights + t * size, scales, bias, y, N, adds)


@device
def four_rows_of_codes(
    row: ProductOfCodes, x0: Pointer, x1: Pointer, x2: Pointer, x3: Pointer,
    y0: Pointer, y1: Pointer, y2: Pointer, y3: Pointer, memory: Pointer,
) -> None:  # fmt: skip
    """Compute four rows, tap by tap."""
    T, taps, K, N, weights, bias, scales = row.T, row.taps, row.K, row.N, row.W, row.bias, row.scales
    words = (K + 3) >> 2
    size = words * ((N + LANES - 1) & -LANES)
    for t in range(T):
        tap, adds = taps[t], 1 if t > 0 else 2 * row.accumulate
        p, q = encode_row(x0 + tap, K, memory), encode_row(x1 + tap, K, memory + ROW_FLOATS)
        r = encode_row(x2 + tap, K, memory + 2 * ROW_FLOATS)
        s = encode_row(x3 + tap, K, memory + 3 * ROW_FLOATS)
        four_rows_codes(p, q, r, s, words, weights + t * size, scales, bias, y0, y1, y2, y3, N, adds)


@kernel
def product_of_codes(row: ProductOfCodes) -> None:
    """Compute four rows at a time."""
    x, y, M, rows_x, rows_y = row.x, row.y, row.M, row.rows_x, row.rows_y
    memory, m = stack_f32(CODE_MEMORY), 0
    while m + ROWS <= M:
        x0, x1, x2, x3 = x + rows_x[m], x + rows_x[m + 1], x + rows_x[m + 2], x + rows_x[m + 3]
        y0, y1, y2, y3 = y + rows_y[m], y + rows_y[m + 1], y + rows_y[m + 2], y + rows_y[m + 3]
        four_rows_of_codes(row, x0, x1, x2, x3, y0, y1, y2, y3, memory)
        m += ROWS
    while m < M:
        one_row_of_codes(row, x + rows_x[m], y + rows_y[m], memory)
        m += 1
    finish(row.finish, y, rows_y, M, row.N)
