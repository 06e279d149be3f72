"""Products of sliding windows with packed weights: f32, f16, bf16, or int8 with a scale for each column.

The sums are f32 in every form. Each kernel has one form of weights; their code is shared.
"""

from collections.abc import Iterator

from pulse.jit.language.dispatch import outline
from pulse.jit.language.dots import has_byte_dots
from pulse.jit.language.simd import LANES, vload_part, vstore_part
from pulse.jit.language.stack import stack_f32
from pulse.jit.language.tuples import each
from pulse.jit.registers import HAS_AVX512, HAS_FULL_WIDTH_AVX512
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Operand, ScalesOperand, packed_weights, reads, weight_scales
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run
from pulse.program.kernels.matmul.digits import DIGIT_SCRATCH_FLOATS, sum_taps, write_digits_of_taps
from pulse.program.kernels.matmul.epilogue import Epilogue, epilogue
from pulse.program.kernels.matmul.product_blocks import (
    HALF,
    PANEL,
    initial_sum,
    multiply_four_rows,
    multiply_row_narrow,
    multiply_row_wide,
    multiply_rows_by_three_halves,
    multiply_rows_wide,
    multiply_two_rows_wide,
    panel_width,
)
from pulse.program.kernels.matmul.product_eight import (
    multiply_eight_rows_by_8,
    multiply_eight_rows_by_24,
    multiply_eight_rows_narrow,
)
from pulse.program.kernels.matmul.scales import Scales, end_sum, offset_scales
from pulse.program.kernels.matmul.windows import ProductFields
from pulse.program.kernels.row_tuples import EIGHT, FOUR, ONE, TWO, number_until, row_at

MAX_BLOCK_ROWS = 8
"""The most rows of a block; a row of the table is cut between blocks."""


@device
def multiply_row_by_panels(row: "ProductRow", scales: Scales, m: int) -> None:
    """Multiply one row by all panels.

    The whole panels are a separate loop because all stores are whole vectors and its pointers stay in registers.
    """
    T, taps, K, N, accumulate, size = row.T, row.taps, row.K, row.N, row.accumulate, row.T * row.K * PANEL
    x, w, bias, y, rest = row.x + row.rows_x[m], row.W, row.bias, row.y + row.rows_y[m], N
    while rest >= PANEL:
        multiply_row_wide(x, y, (taps, T, K, w, bias, scales, PANEL, accumulate))
        w, bias, scales, y = w + size, bias + PANEL, offset_scales(scales, PANEL), y + PANEL
        rest -= PANEL
    last = taps, T, K, w, bias, scales, rest, accumulate
    if rest > LANES:
        multiply_row_wide(x, y, last)
    elif rest > 0:
        multiply_row_narrow(x, y, last)


@device
def multiply_row_by_digits(row: "ProductRow", scales: Scales, m: int, digit_scratch: Pointer) -> None:
    """Multiply one row by all int8 panels, by its digits if it has some."""
    T, taps, K, N, accumulate = row.T, row.taps, row.K, row.N, row.accumulate
    x, weights, bias, y, n = row.x + row.rows_x[m], row.W, row.bias, row.y + row.rows_y[m], 0
    digits = write_digits_of_taps(x, taps, T, K, scales, digit_scratch)
    _, unit, _ = digits
    if unit == 0:
        multiply_row_by_panels(row, scales, m)
        return
    while n < N:
        w, b, s, z, rest = weights + n * T * K, bias + n, offset_scales(scales, n), y + n, N - n
        first = initial_sum(vload_part(b, 0, rest), z, rest, accumulate)
        if panel_width(rest) > LANES:
            beyond = rest - LANES
            second = initial_sum(vload_part(b + LANES, 0, beyond), z + LANES, beyond, accumulate)
            low, high = sum_taps(digits, x, taps, T, K, w, TWO)
            vstore_part(z, 0, rest, end_sum(low, first, s, 0, rest))
            vstore_part(z + LANES, 0, beyond, end_sum(high, second, s, LANES, beyond))
        else:
            (low,) = sum_taps(digits, x, taps, T, K, w, ONE)
            vstore_part(z, 0, rest, end_sum(low, first, s, 0, rest))
        n += panel_width(rest)


@device
def multiply_digit_rows(row: "ProductRow", scales: Scales) -> int:
    """Multiply one or two rows by all int8 panels by digits, if that is faster; return the number of columns done."""
    if scales is None:
        return 0
    if not has_byte_dots() or row.M > 2:
        return 0
    digit_scratch = stack_f32(DIGIT_SCRATCH_FLOATS)
    for m in range(row.M):
        multiply_row_by_digits(row, scales, m, digit_scratch)
    return row.N


class PackedProductFields(ProductFields):
    """A product with packed weights, which have scales if they are int8."""

    W: Operand = packed_weights()
    bias: Operand = reads("f32", "N")
    scales: ScalesOperand = weight_scales()


class ProductRow(PackedProductFields):
    """y[rows_y[m] + n] = bias[n] + sum_tk x[rows_x[m] + taps[t] + k] * W[t*K + k, n] (+ y[...]), f32.

    Then the steps of ``epilogue``. W is from ``pack_product``; int8 weights are ``W * scales``. It is read once per
    four rows.
    """

    epilogue: Epilogue

    def cuts(self) -> Iterator[Cut]:
        """Cut rows and columns. One or two int8 rows are computed differently, so parts have at least eight."""
        depth = self.T * self.K
        yield Cut(
            "M",
            MAX_BLOCK_ROWS,
            {"rows_x": 1, "rows_y": 1, **self.epilogue.row_moves()},
            shared=depth * self.N,
        )
        columns = self.epilogue.column_moves()
        if columns is not None:
            moves = {"W": depth, "bias": 1, "scales": 1, "y": 1, **columns}
            yield Cut("N", PANEL, moves, {"epilogue.flat": 0}, shared=self.M * depth)

    def reaches(self) -> Iterator[Reach]:
        yield from self.window_reaches(self.K, self.N)
        yield self.W, run(self.T * self.K * -(-self.N // LANES) * LANES)
        yield self.scales, run(self.N)
        yield from self.epilogue.reaches_on(self.y, self.rows_y, self.M, self.N)


@outline
def multiply_rows_by_panels(row: ProductRow, n: int) -> None:
    """Compute the columns from n, panel by panel, four or eight rows at a time."""
    x, weights, bias, y, scales, accumulate = row.x, row.W, row.bias, row.y, row.scales, row.accumulate
    M, rows_x, rows_y, T, taps, K, N = row.M, row.rows_x, row.rows_y, row.T, row.taps, row.K, row.N
    while n < N:
        w, b, z, s = weights + n * T * K, bias + n, y + n, offset_scales(scales, n)
        rest, width, m = N - n, panel_width(N - n), 0
        panel = taps, T, K, w, b, s, rest, accumulate
        while m + 8 <= M and width == LANES and (HAS_AVX512 or rest <= HALF):
            block_x, block_y = rows_x + m, rows_y + m
            if HAS_FULL_WIDTH_AVX512 and rest <= HALF:
                multiply_eight_rows_by_8(x, block_x, z, block_y, panel)
            elif rest <= HALF:
                multiply_eight_rows_narrow(x, block_x, z, block_y, panel, True)
            else:
                multiply_eight_rows_narrow(x, block_x, z, block_y, panel, False)
            m += 8
        while HAS_AVX512 and m + 8 <= M and LANES < rest <= LANES + HALF:
            if HAS_FULL_WIDTH_AVX512:
                multiply_eight_rows_by_24(x, rows_x + m, z, rows_y + m, panel)
            else:
                eight_x, eight_y = each(row_at, x, rows_x + m, EIGHT), each(row_at, z, rows_y + m, EIGHT)
                multiply_rows_by_three_halves(eight_x, eight_y, panel)
            m += 8
        while HAS_AVX512 and m + 8 <= M and width > LANES:
            eight_x, eight_y = each(row_at, x, rows_x + m, EIGHT), each(row_at, z, rows_y + m, EIGHT)
            multiply_rows_wide(eight_x, eight_y, panel)
            m += 8
        while m + 3 <= M:  # the last block of three computes its third row twice
            four = each(number_until, m, M - 1, FOUR)
            four_x, four_y = each(row_at, x, rows_x, four), each(row_at, z, rows_y, four)
            multiply_four_rows(four_x, four_y, panel)
            m += 4
        if m + 2 == M and width > LANES:
            two_x, two_y = each(row_at, x, rows_x + m, TWO), each(row_at, z, rows_y + m, TWO)
            multiply_two_rows_wide(two_x, two_y, panel)
            m += 2
        while m < M:
            x0, y0 = x + rows_x[m], z + rows_y[m]
            if width > LANES:
                multiply_row_wide(x0, y0, panel)
            else:
                multiply_row_narrow(x0, y0, panel)
            m += 1
        n += width


@kernel
def product(row: ProductRow) -> None:
    """Compute whole panels of a single row, or all panels of many rows, which need more registers."""
    n = multiply_digit_rows(row, row.scales)
    if n == 0 and row.M == 1:
        multiply_row_by_panels(row, row.scales, 0)
    elif n < row.N:
        multiply_rows_by_panels(row, n)
    epilogue(row.epilogue, row.y, row.rows_y, row.M, row.N)
