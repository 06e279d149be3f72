"""Products with weights that are mostly zeros, as those of filter banks: each block of columns has its band of inputs.

A band is the range of inputs from the first to the last one that any column of the block has a weight for. The inputs
outside of it are not read.
"""

from collections.abc import Iterator

import numpy as np

from pulse.facts import Array
from pulse.jit.language.simd import (
    LANES,
    Vector,
    vfma,
    vload,
    vload_part,
    vsplat,
    vstore_part,
    vzero,
)
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Operand, reads
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, words
from pulse.program.kernels.matmul.finish import Finish, finish
from pulse.program.kernels.matmul.windows import WindowFields
from pulse.support.record import record

ROWS = 4
"""The rows of a block."""


@record
class Bands:
    """The bands of a matrix [K, N].

    starts   [blocks], the first input of each band
    counts   [blocks], its number of inputs
    weights  [sum of counts, width], band after band; missing columns are zeros
    """

    starts: Array
    counts: Array
    weights: Array

    @classmethod
    def of(cls, matrix: Array, width: int) -> "Bands":
        """Return the bands of blocks of ``width`` columns."""
        blocks = [matrix[:, first : first + width] for first in range(0, matrix.shape[1], width)]
        used = [np.flatnonzero(block.any(axis=1)) for block in blocks]
        starts = [int(inputs[0]) if inputs.size else 0 for inputs in used]
        counts = [int(inputs[-1]) + 1 - start if inputs.size else 0 for inputs, start in zip(used, starts)]
        parts = [
            np.pad(block[start : start + count], ((0, 0), (0, width - block.shape[1])))
            for block, start, count in zip(blocks, starts, counts)
        ]
        return cls(np.array(starts, np.int64), np.array(counts, np.int64), np.concatenate(parts))

    def matrix(self, rows: int, columns: int) -> Array:
        """Return the matrix [rows, columns]."""
        width, first = self.weights.shape[1], 0
        matrix = np.zeros((rows, len(self.starts) * width), self.weights.dtype)
        for block, (start, count) in enumerate(zip(self.starts, self.counts)):
            columns_of_block = slice(block * width, (block + 1) * width)
            matrix[start : start + count, columns_of_block] = self.weights[first : first + count]
            first += count
        return matrix[:, :columns]


class BandedFields(WindowFields):
    """A product of rows of K inputs and N columns, in blocks that have a band each; all bands have ``inputs`` inputs.

    T is 1. ``starts`` and ``counts`` have one number for each block.
    """

    K: int
    N: int
    inputs: int
    starts: Operand = reads("i64")
    counts: Operand = reads("i64")

    def band_reaches(self, width: int, lanes: int = 1) -> Iterator[Reach]:
        """Yield the ``reaches`` of windows and tables, for blocks of ``width`` columns of ``lanes`` streams."""
        blocks = -(-self.N // width)
        starts, counts = words(self.starts, blocks), words(self.counts, blocks)
        require(self.T == 1 and self.N > 0, "bands of several taps, or of none")
        require(bool((starts >= 0).all() and (counts >= 0).all()), "a band before the first input")
        require(bool((starts + counts <= self.K).all()), "a band beyond the last input")
        require(int(counts.sum()) == self.inputs, "bands of other sizes than their weights")
        yield from self.window_reaches(self.K, self.N, lanes)


class ProductBandedRow(BandedFields):
    """y[rows_y[m] + n] = bias[n] + sum_k x[rows_x[m] + taps[0] + k] * W[k, n] over the band of n; then the steps of
    ``finish``.

    W has the weights of ``Bands`` of 16 columns.
    """

    W: Operand = reads("f32", "inputs", LANES)
    bias: Operand = reads("f32", "N")
    finish: Finish

    def multiply_adds(self) -> int:
        return self.M * self.inputs * LANES

    def cuts(self) -> Iterator[Cut]:
        moves = {"rows_x": 1, "rows_y": 1, **self.finish.row_moves()}
        yield Cut("M", ROWS, moves, shared=self.inputs * LANES)

    def reaches(self) -> Iterator[Reach]:
        yield from self.band_reaches(LANES)
        yield from self.finish.reaches_on(self.y, self.rows_y, self.M, self.N)


@device
def sum_band(x: Pointer, w: Pointer, count: int, first: Vector) -> Vector:
    """Return the sums of 16 columns over a band of one row, four inputs at a time, plus ``first``."""
    sum0, sum1, sum2, sum3 = first, vzero(), vzero(), vzero()
    k = 0
    while k + 4 <= count:
        p, v = x + k, w + k * LANES
        sum0, sum1 = vfma(vsplat(p[0]), vload(v, 0), sum0), vfma(vsplat(p[1]), vload(v, LANES), sum1)
        sum2 = vfma(vsplat(p[2]), vload(v, 2 * LANES), sum2)
        sum3 = vfma(vsplat(p[3]), vload(v, 3 * LANES), sum3)
        k += 4
    while k < count:
        sum0 = vfma(vsplat(x[k]), vload(w, k * LANES), sum0)
        k += 1
    return (sum0 + sum1) + (sum2 + sum3)


@device
def sum_band_of_four(
    x0: Pointer, x1: Pointer, x2: Pointer, x3: Pointer, w: Pointer, count: int, first: Vector
) -> tuple[Vector, Vector, Vector, Vector]:
    """Return the sums as ``sum_band``, of four rows."""
    sum0, sum1, sum2, sum3 = first, first, first, first
    for k in range(count):
        v = vload(w, k * LANES)
        sum0, sum1 = vfma(vsplat(x0[k]), v, sum0), vfma(vsplat(x1[k]), v, sum1)
        sum2, sum3 = vfma(vsplat(x2[k]), v, sum2), vfma(vsplat(x3[k]), v, sum3)
    return sum0, sum1, sum2, sum3


@kernel
def product_banded(row: ProductBandedRow) -> None:
    """Compute block by block, four rows at a time; after the last row, repeat it."""
    x, y, w, bias, starts, counts = row.x + row.taps[0], row.y, row.W, row.bias, row.starts, row.counts
    M, N, rows_x, rows_y = row.M, row.N, row.rows_x, row.rows_y
    for block in range((N + LANES - 1) // LANES):
        n = block * LANES
        rest, start, count = N - n, starts[block], counts[block]
        first, source, target, m = vload_part(bias + n, 0, rest), x + start, y + n, 0
        while m + 1 < M:
            m1, m2, m3 = m + 1, min(m + 2, M - 1), min(m + 3, M - 1)
            x0, x1, x2, x3 = rows_x[m], rows_x[m1], rows_x[m2], rows_x[m3]
            sum0, sum1, sum2, sum3 = sum_band_of_four(
                source + x0, source + x1, source + x2, source + x3, w, count, first
            )
            vstore_part(target + rows_y[m], 0, rest, sum0)
            vstore_part(target + rows_y[m1], 0, rest, sum1)
            vstore_part(target + rows_y[m2], 0, rest, sum2)
            vstore_part(target + rows_y[m3], 0, rest, sum3)
            m += ROWS
        if m < M:
            vstore_part(target + rows_y[m], 0, rest, sum_band(source + rows_x[m], w, count, first))
        w = w + count * LANES
    finish(row.finish, y, rows_y, M, N)
