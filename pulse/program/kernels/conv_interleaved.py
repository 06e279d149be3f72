"""Depthwise windows of sixteen streams whose memories are interleaved; see ``matmul.product_interleaved``."""

from collections.abc import Iterator
from operator import add, getitem, mul

from pulse.jit.language.simd import LANES, vfma, vload, vsplat
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach
from pulse.program.kernels.conv_depthwise import DepthwiseFields
from pulse.program.kernels.matmul.epilogue import Epilogue
from pulse.program.kernels.matmul.product_interleaved import (
    begins_with_prelu,
    finish_rows,
    row_offset,
    store_columns,
)
from pulse.program.kernels.row_tuples import FOUR, Pointers, Vectors, element, first_four


class InterleavedDepthwiseRow(DepthwiseFields):
    """y[rows_y[m] + c] = bias[c] + sum_t x[rows_x[m] + taps[t] + c] * W[t*C + c] of 16 streams, then ``epilogue``."""

    epilogue: Epilogue

    def multiply_adds(self) -> int:
        return LANES * super().multiply_adds()

    def reaches(self) -> Iterator[Reach]:
        yield from self.window_reaches(self.C, self.C, LANES)
        yield from self.epilogue.reaches_on(self.y, self.rows_y, self.M, self.C, LANES)


@device
def add_to_channel(sums: Vectors, x: Pointers, i: int, weight: float) -> Vectors:
    """Add the products of the vectors at ``x[i]`` of four rows with the weight of a channel."""
    return each(vfma, each(vload, x, i), vsplat(weight), sums)


@device
def sum_four_channels(
    x: Pointers, taps: Pointer, T: int, w: Pointer, C: int, bias: Pointer, y: Pointers, rest: int,
    has_prelu: int, slopes: Pointer,
) -> None:  # fmt: skip
    """Sum the windows of four rows for four channels, of which ``rest`` exist; the last one stands for the others."""
    channels = first_four(rest - 1)
    sums = each(copies, each(element, bias, channels), copies(x, FOUR))
    for t in range(T):
        offsets = each(add, taps[t] * LANES, each(mul, channels, LANES))
        sums = each(add_to_channel, sums, copies(x, FOUR), offsets, each(getitem, w, channels))
        w = w + C
    (a0, a1, a2, a3), (b0, b1, b2, b3), (c0, c1, c2, c3), (d0, d1, d2, d3) = sums
    rows = (a0, b0, c0, d0), (a1, b1, c1, d1), (a2, b2, c2, d2), (a3, b3, c3, d3)
    each(store_columns, y, rest, has_prelu, slopes, rows)


@kernel
def interleaved_depthwise(row: InterleavedDepthwiseRow) -> None:
    """Compute four rows at a time, four channels of each."""
    x, weights, bias, y = row.x, row.W, row.bias, row.y
    M, rows_x, rows_y, T, taps, C = row.M, row.rows_x, row.rows_y, row.T, row.taps, row.C
    has_prelu, steps = begins_with_prelu(row.epilogue), row.epilogue.steps
    slopes = steps[0].operand if has_prelu else bias
    for m in range(0, M, 4):
        numbers = each(add, m, first_four(M - 1 - m))  # repeat the last row
        all_x, all_y = each(row_offset, rows_x, numbers), each(row_offset, rows_y, numbers)
        for c in range(0, C, 4):
            p, q = each(add, x + c * LANES, all_x), each(add, y + c * LANES, all_y)
            sum_four_channels(p, taps, T, weights + c, C, bias + c, q, C - c, has_prelu, slopes + c)
        finish_rows(row.epilogue, y, rows_y, m, min(m + 4, M), C, has_prelu)
