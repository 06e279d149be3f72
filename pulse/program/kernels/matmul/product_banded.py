"""Products with weights that are mostly zeros, as those of filter banks: each block of columns has its band of inputs.

A band is the range of inputs from the first to the last one that any column of the block has a weight for. The inputs
outside of it are not read.
"""

from collections.abc import Iterator
from operator import getitem

import numpy as np

from pulse.facts import Array
from pulse.jit.language.simd import LANES, Vector, vfma, vload, vload_part, vsplat, vstore_part, vzero
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Operand, reads
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, words
from pulse.program.kernels.matmul.epilogue import Epilogue, epilogue
from pulse.program.kernels.matmul.windows import WindowFields
from pulse.program.kernels.row_tuples import FOUR, Pointers, Vectors, number_until, row_at
from pulse.support.record import record


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
    """y[rows_y[m] + n] = bias[n] + sum_k x[rows_x[m] + taps[0] + k] * W[k, n] over the band of n.

    Then the steps of ``epilogue``. W has the weights of ``Bands`` of 16 columns.
    """

    W: Operand = reads("f32", "inputs", LANES)
    bias: Operand = reads("f32", "N")
    epilogue: Epilogue

    def multiply_adds(self) -> int:
        return self.M * self.inputs * LANES

    def cuts(self) -> Iterator[Cut]:
        moves = {"rows_x": 1, "rows_y": 1, **self.epilogue.row_moves()}
        yield Cut("M", len(FOUR), moves, shared=self.inputs * LANES)

    def reaches(self) -> Iterator[Reach]:
        yield from self.band_reaches(LANES)
        yield from self.epilogue.reaches_on(self.y, self.rows_y, self.M, self.N)


@device
def sum_band(x: Pointer, w: Pointer, count: int, first: Vector) -> Vector:
    """Return the sums of 16 columns over a band of one row, four inputs at a time, plus ``first``."""
    total, sums, k = first, copies(vzero(), FOUR), 0
    while k + len(FOUR) <= count:
        sums = each(add_product, sums, each(getitem, x + k, FOUR), each(load_inputs, w + k * LANES, FOUR))
        k += len(FOUR)
    while k < count:
        total = add_product(total, x[k], vload(w, k * LANES))
        k += 1
    return total + ((sums[0] + sums[1]) + (sums[2] + sums[3]))


@device
def add_product(total: Vector, x: float, w: Vector) -> Vector:
    """Add the products of one input and the weights of 16 columns."""
    return vfma(vsplat(x), w, total)


@device
def load_inputs(w: Pointer, k: int) -> Vector:
    return vload(w, k * LANES)


@device
def sum_band_of_rows(x: Pointers, w: Pointer, count: int, first: Vector) -> Vectors:
    """Return the sums as ``sum_band``, of several rows."""
    sums = copies(first, x)
    for k in range(count):
        sums = each(add_product, sums, each(getitem, x, k), vload(w, k * LANES))
    return sums


@kernel
def product_banded(row: ProductBandedRow) -> None:
    """Compute block by block, four rows at a time; after the last row, that row again."""
    x, y, w, bias, starts, counts = row.x + row.taps[0], row.y, row.W, row.bias, row.starts, row.counts
    M, N, rows_x, rows_y = row.M, row.N, row.rows_x, row.rows_y
    for block in range((N + LANES - 1) // LANES):
        n = block * LANES
        rest, start, count = N - n, starts[block], counts[block]
        first, source, target, m = vload_part(bias + n, 0, rest), x + start, y + n, 0
        while m + 1 < M:
            rows = each(number_until, m, M - 1, FOUR)
            sums = sum_band_of_rows(each(row_at, source, rows_x, rows), w, count, first)
            each(vstore_part, each(row_at, target, rows_y, rows), 0, rest, sums)
            m += len(FOUR)
        if m < M:
            vstore_part(target + rows_y[m], 0, rest, sum_band(source + rows_x[m], w, count, first))
        w = w + count * LANES
    epilogue(row.epilogue, y, rows_y, M, N)
