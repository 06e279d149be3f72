"""Products of sliding windows with weights of few columns: several inputs side by side in a vector.

With 4 columns, a vector of 16 lanes would be nearly empty. Here it holds the same 4 columns for four inputs, 2
columns for eight of them, or one for 16; the sums of a column are added up at the end.
"""

from collections.abc import Callable, Iterator
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.simd import (
    LANES,
    Vector,
    vadd_pairs,
    vfma,
    vload,
    vload_eights,
    vload_fours,
    vload_part,
    vstore,
    vstore_part,
    vzero,
)
from pulse.jit.language.stack import stack_f32
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, run
from pulse.program.kernels.matmul.epilogue import Epilogue, epilogue
from pulse.program.kernels.matmul.product import PackedProductFields
from pulse.program.kernels.matmul.product_blocks import initial_sum
from pulse.program.kernels.matmul.scales import begin_sum, end_sum
from pulse.program.kernels.row_tuples import EVEN, ODD, number_until, row_at

WIDTHS = (1, 2, 4)
"""The columns of a vector."""
ROWS = 8
"""The rows of a block."""
MAX_SUMS = ROWS * WIDTHS[-1]
"""The most sums of a block."""
SECOND_CALL, SECOND_ROW = 100, 10
"""The overhead of a second product, per call and per row, in multiplied vectors."""


def pack_few(w: NDArray[Any], width: int) -> NDArray[Any]:
    """Pack weights [R, N] of any type, N up to ``width``, in the order that ``product_few`` reads.

    [R / inputs, width, inputs], where ``inputs * width`` is 16 and divides R * width; missing columns are zeros.
    """
    inputs = LANES // width
    packed = np.zeros((w.shape[0] // inputs, width, inputs), w.dtype)
    packed[:, : w.shape[1]] = w.reshape(-1, inputs, w.shape[1]).transpose(0, 2, 1)
    return packed.reshape(-1)


def few_columns(M: int, T: int, K: int, N: int) -> tuple[int, int] | None:
    """Return the vector width, and how many of the K inputs of a tap, ``product_few`` should take.

    ``product`` adds the other inputs. Return None if ``product`` alone multiplies fewer vectors.
    """
    min_work, best = M * T * K, None
    for width in WIDTHS:
        inputs = LANES // width
        whole = K - K % inputs
        if not (0 < N <= width and whole):
            continue
        work = -(-M // ROWS) * ROWS * T * whole // inputs
        if whole < K:
            work += M * (T * (K - whole) + SECOND_ROW) + SECOND_CALL
        if work < min_work:
            min_work, best = work, (width, whole)
    return best


class ProductFewRow(PackedProductFields):
    """A ``ProductRow`` of up to ``width`` columns: 1, 2 or 4. W is from ``pack_few``.

    K is a multiple of 16 / width.
    """

    width: int
    epilogue: Epilogue

    def cuts(self) -> Iterator[Cut]:
        moves = {"rows_x": 1, "rows_y": 1, **self.epilogue.row_moves()}
        yield Cut("M", ROWS, moves, shared=self.T * self.K * self.N)

    def reaches(self) -> Iterator[Reach]:
        require(self.width in WIDTHS and 0 < self.N <= self.width, f"{self.N} columns of {self.width}")
        require(self.K * self.width % LANES == 0, f"{self.K} inputs of a tap")
        yield from self.window_reaches(self.K, self.N)
        yield self.W, run(self.T * self.K * self.width)
        yield self.scales, run(self.N)
        yield from self.epilogue.reaches_on(self.y, self.rows_y, self.M, self.N)


def make_block(inputs: int, load: Callable[[Pointer, int], Vector]) -> Callable[..., None]:
    """Make the function that sums eight rows, with this many inputs in a vector; ``load`` repeats them."""

    @device
    def block(
        x: Pointer,
        rows_x: Pointer,
        rows: int,
        taps: Pointer,
        T: int,
        K: int,
        w: Pointer,
        first: Vector,
        y: Pointer,
    ) -> None:
        """Compute ``y[m * width + n]`` for rows m < 8, plus ``first``; after the last of ``rows``, repeat it."""
        even, odd = each(number_until, 0, rows - 1, EVEN), each(number_until, 0, rows - 1, ODD)
        x0, x1 = each(row_at, x, rows_x, even), each(row_at, x, rows_x, odd)
        sums0 = sums1 = copies(vzero(), EVEN)
        for t in range(T):
            p, q, k = each(add, x0, taps[t]), each(add, x1, taps[t]), 0
            while k < K:
                column = vload(w, 0)
                sums0 = each(vfma, each(load, p, k), column, sums0)
                sums1 = each(vfma, each(load, q, k), column, sums1)
                w = w + LANES
                k += inputs
        a, b, c, d = each(vadd_pairs, sums0, sums1)
        sum0, sum1 = vadd_pairs(a, b), vadd_pairs(c, d)
        if inputs >= 8:
            sum0 = vadd_pairs(sum0, sum1)
        if inputs == 16:
            sum0 = vadd_pairs(sum0, sum0)
        vstore_part(y, 0, LANES if inputs < 16 else ROWS, sum0 + first)
        if inputs == 4:
            vstore(y, LANES, sum1 + first)

    return block


@device
def four_inputs(p: Pointer, k: int) -> Vector:
    return vload_fours(p, k, 0, 4)


@device
def eight_inputs(p: Pointer, k: int) -> Vector:
    return vload_eights(p, k, 0, 2)


@device
def all_inputs(p: Pointer, k: int) -> Vector:
    return vload(p, k)


four_columns, two_columns, one_column = (
    make_block(4, four_inputs),
    make_block(8, eight_inputs),
    make_block(16, all_inputs),
)


@device
def are_neighbours(rows_y: Pointer, rows: int, N: int) -> bool:
    """Return whether a block has eight contiguous rows."""
    adjacent = rows == ROWS
    for i in range(1, rows):
        adjacent = adjacent and rows_y[i] == rows_y[0] + i * N
    return adjacent


@kernel
def product_few(row: ProductFewRow) -> None:
    """Compute eight rows at a time, directly in y if they are contiguous there, else through the stack."""
    sums, repeated = stack_f32(MAX_SUMS), stack_f32(LANES)
    x, w, y, scales, width = row.x, row.W, row.y, row.scales, row.width
    M, rows_x, rows_y, T, taps, K, N = row.M, row.rows_x, row.rows_y, row.T, row.taps, row.K, row.N
    accumulate, columns, bias = row.accumulate, row.bias, vload_part(row.bias, 0, row.N)
    for i in range(LANES):
        repeated[i] = columns[min(i & (width - 1), N - 1)]
    whole = scales is None and not accumulate and width == N
    for m in range(0, M, ROWS):
        rows, block_x = min(ROWS, M - m), rows_x + m
        direct = whole and are_neighbours(rows_y + m, rows, N)
        first, target = vzero(), sums
        if direct:
            first, target = vload(repeated, 0), y + rows_y[m]
        if width == 4:
            four_columns(x, block_x, rows, taps, T, K, w, first, target)
        elif width == 2:
            two_columns(x, block_x, rows, taps, T, K, w, first, target)
        else:
            one_column(x, block_x, rows, taps, T, K, w, first, target)
        if not direct:
            for i in range(rows):
                p = y + rows_y[m + i]
                initial = initial_sum(bias, p, N, accumulate)
                total = vload_part(sums, i * width, N) + begin_sum(initial, scales)
                vstore_part(p, 0, N, end_sum(total, initial, scales, 0, N))
    epilogue(row.epilogue, y, rows_y, M, N)
