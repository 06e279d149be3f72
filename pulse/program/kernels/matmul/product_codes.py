"""Products of sliding windows with int8 or bf16 weights, in whose form the windows are rounded first.

int8: a row of K elements becomes ``code * row_scale``; the scale is its largest magnitude / 127
(``pulse.ops.quantize_activations``). The sums of products of codes, in int32, are exact, so they are the same for any
division into blocks and on every processor. The instruction needs one unsigned operand: the codes of weights are
stored with 128 added, which adds 128 times the sum of the row's codes to a sum.

bf16: two products at a time are added to a sum in f32 (``vdot_halves``). ``scales`` is None. Every block adds the terms
of a column in the same order, so the sums are the same bits for any division too.
"""

from collections.abc import Iterator
from operator import add, mul
from typing import Any, TypeAlias

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
from pulse.jit.language.tuples import copies, each, indices
from pulse.jit.registry import device, exact_device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Operand, ScalesOperand, packed_weights, reads, weight_scales
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, run
from pulse.ops.quantize_codes import MAX_ROW_ELEMENTS, ZERO_CODE
from pulse.program.kernels.matmul.epilogue import Epilogue, epilogue
from pulse.program.kernels.matmul.scales import Scales, offset_scales
from pulse.program.kernels.matmul.windows import ProductFields
from pulse.program.kernels.quantize_activations import ROW_FLOATS, CodedRow, encode_row
from pulse.program.kernels.row_tuples import FOUR, Indices, Pointers, Vectors, row_at

ROWS = 4
"""The rows that share one reading of the weights."""
BLOCKS = 4
"""The vectors of a panel."""
PANEL = BLOCKS * LANES
"""The columns that are read together; ``x & -PANEL`` rounds down to whole panels."""
HALF_COLUMNS, PANEL_COLUMNS = (0, 16), (0, 16, 32, 48)
"""The blocks of half a panel, which four rows take at a time, and of a panel, which one row takes."""
CodedRows: TypeAlias = tuple[CodedRow, ...]
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
def row_words(K: int, scales: Scales) -> int:
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


@exact_device
def add_totals(a: Vector, b: Vector, c: Vector, d: Vector, scales: Scales) -> Vector:
    """Add four sums of words."""
    if scales is None:
        return vbits((vfrombits(a) + vfrombits(b)) + (vfrombits(c) + vfrombits(d)))
    return (a + b) + (c + d)


@exact_device
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
    total: Vector, row: CodedRow, scales: Scales, bias: Pointer, y: Pointer, n: int, N: int, adds: int
) -> None:
    """Store the columns from n of one row."""
    (_, row_scale, _), rest = row, N - n
    first = first_sum(bias + n, y + n, rest, adds)
    vstore_part(y, n, rest, add_sum(total, row_scale, offset_scales(scales, n), first, rest))


@device
def word_of(row: CodedRow, k: int) -> int:
    words, _, _ = row
    return words[k]


@device
def begin_words(row: CodedRow) -> Vector:
    """Return the initial sum of the words of a row."""
    _, _, start = row
    return vtoint(vzero()) + start


@device
def add_words(totals: Vectors, row: CodedRow, k: int, weights: Vectors, scales: Scales) -> Vectors:
    """Add the products of word k of a row with the words of several blocks of columns."""
    return each(dot_words, totals, weights, word_of(row, k), scales)


@device
def store_sums_of_words(
    totals: Vectors, row: CodedRow, scales: Scales, bias: Pointer, y: Pointer, blocks: Indices, N: int, adds: int
) -> None:  # fmt: skip
    """Store the columns of the blocks of one row."""
    each(store_sum_of_words, totals, copies(row, totals), scales, bias, y, blocks, N, adds)


@device
def multiply_panel(
    rows: CodedRows, words: int, w: Pointer, scales: Scales, bias: Pointer, y: Pointers, n: int, N: int, adds: int,
    columns: Indices,
) -> None:  # fmt: skip
    """Multiply coded rows by the blocks of a panel that begin at these columns from n; a column has one sum."""
    sums = each(copies, each(begin_words, rows), copies(columns, rows))
    for k in range(words):
        weights = each(vload_words, w, columns)
        sums = each(add_words, sums, rows, k, copies(weights, rows), scales)
        w = w + PANEL
    each(store_sums_of_words, sums, rows, scales, bias, y, copies(each(add, n, columns), rows), N, adds)


@device
def multiply_last_block(
    rows: CodedRows, words: int, w: Pointer, scales: Scales, bias: Pointer, y: Pointers, n: int, N: int, adds: int,
) -> None:  # fmt: skip
    """Multiply coded rows by the last 16 columns or less, which have four sums, each with every fourth word."""
    zeros, k = copies(vtoint(vzero()), rows), 0
    a, b, c, d = each(begin_words, rows), zeros, zeros, zeros
    while k + 4 <= words:
        u, v, s, t = each(vload_words, w, PANEL_COLUMNS)
        a = each(dot_words, a, u, each(word_of, rows, k), scales)
        b = each(dot_words, b, v, each(word_of, rows, k + 1), scales)
        c = each(dot_words, c, s, each(word_of, rows, k + 2), scales)
        d = each(dot_words, d, t, each(word_of, rows, k + 3), scales)
        w = w + 4 * LANES
        k += 4
    while k < words:
        a = each(dot_words, a, vload_words(w, 0), each(word_of, rows, k), scales)
        w = w + LANES
        k += 1
    totals = each(add_totals, a, b, c, d, scales)
    each(store_sum_of_words, totals, rows, scales, bias, y, n, N, adds)


@device
def multiply_rows_of_codes(
    rows: CodedRows, words: int, w: Pointer, scales: Scales, bias: Pointer, y: Pointers, N: int, adds: int,
    columns: Indices,
) -> None:  # fmt: skip
    """Multiply coded rows by one tap; ``adds`` as in ``first_sum``. ``columns`` are those of whole panels to take."""
    n, whole = 0, N & -PANEL
    while n < whole:
        here = w + (n & -PANEL) * words + (n & (PANEL - 1))
        multiply_panel(rows, words, here, scales, bias, y, n, N, adds, columns)
        n += len(columns) * LANES
    while n < N:
        multiply_last_block(rows, words, w + n * words, scales, bias, y, n, N, adds)
        n += LANES


def packed_codes_size(elements: int, columns: int) -> int:
    """Return the number of codes of ``pack_codes`` for one tap."""
    return -(-elements // BYTES) * BYTES * -(-columns // LANES) * LANES


class ProductOfCodesRow(ProductFields):
    """y[rows_y[m] + n] = bias[n] + sum_tk c[m, t, k] * row_scale[m, t] * W[t*K + k, n] * scales[n] (+ y[...]), f32.

    Then the steps of ``epilogue``. c * row_scale are the elements of x at rows_x[m] + taps[t] as int8 codes
    (``pulse.ops.quantize_activations``), or as bf16, without row_scale and scales; W is from ``pack_codes``.
    """

    rounds_activations = True
    W: Operand = packed_weights()
    bias: Operand = reads("f32", "N")
    scales: ScalesOperand = weight_scales()
    epilogue: Epilogue

    def cuts(self) -> Iterator[Cut]:
        """Cut rows, at blocks of four."""
        depth = self.T * self.K
        yield Cut("M", ROWS, {"rows_x": 1, "rows_y": 1, **self.epilogue.row_moves()}, shared=depth * self.N)

    def reaches(self) -> Iterator[Reach]:
        require(0 < self.K <= MAX_ROW_ELEMENTS, f"rows of {self.K} elements")
        yield from self.window_reaches(self.K, self.N)
        yield self.W, run(self.T * packed_codes_size(self.K, self.N))
        yield self.scales, run(self.N)
        yield from self.epilogue.reaches_on(self.y, self.rows_y, self.M, self.N)


@device
def compute_rows_of_codes(
    row: ProductOfCodesRow, x: Pointers, y: Pointers, memory: Pointer, columns: Indices
) -> None:
    """Compute one or four rows, tap by tap; ``columns`` as for ``multiply_rows_of_codes``."""
    T, taps, K, N, bias, scales, weights = row.T, row.taps, row.K, row.N, row.bias, row.scales, as_i32(row.W)
    words, memories = row_words(K, scales), each(add, memory, each(mul, indices(x), ROW_FLOATS))
    size = words * ((N + LANES - 1) & -LANES)
    for t in range(T):
        adds = 1 if t > 0 else 2 * row.accumulate
        rows = each(encode_row, each(add, x, taps[t]), K, scales, memories)
        multiply_rows_of_codes(rows, words, weights + t * size, scales, bias, y, N, adds, columns)


@kernel
def product_of_codes(row: ProductOfCodesRow) -> None:
    """Compute four rows at a time."""
    x, y, M, rows_x, rows_y = row.x, row.y, row.M, row.rows_x, row.rows_y
    memory, m = stack_f32(CODE_MEMORY), 0
    while m + ROWS <= M:
        four_x, four_y = each(row_at, x, rows_x + m, FOUR), each(row_at, y, rows_y + m, FOUR)
        compute_rows_of_codes(row, four_x, four_y, memory, HALF_COLUMNS)
        m += ROWS
    while m < M:
        compute_rows_of_codes(row, (x + rows_x[m],), (y + rows_y[m],), memory, PANEL_COLUMNS)
        m += 1
    epilogue(row.epilogue, y, rows_y, M, row.N)
