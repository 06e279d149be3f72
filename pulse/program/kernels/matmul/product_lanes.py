"""Products for several streams: eight or four lanes share one reading of the weights."""

from operator import add

from pulse.jit.lane_bases import lane, lane_count
from pulse.jit.language.simd import LANES
from pulse.jit.language.tuples import each
from pulse.jit.registers import HAS_AVX512
from pulse.jit.registry import device, lanes_kernel
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul.epilogue import epilogue
from pulse.program.kernels.matmul.product import ProductRow, product
from pulse.program.kernels.matmul.product_blocks import (
    multiply_four_rows,
    multiply_row_narrow,
    multiply_row_wide,
    multiply_rows_wide,
    panel_width,
)
from pulse.program.kernels.matmul.scales import offset_scales
from pulse.program.kernels.row_tuples import EIGHT, FOUR


@device
def lane_x(row: ProductRow, l: int, offset: int) -> Pointer:
    """Return the address of a row of x in lane l; past the last lane, of the last one."""
    return lane(row, min(l, lane_count(row) - 1)).x + offset


@device
def lane_y(row: ProductRow, l: int, offset: int) -> Pointer:
    """Return the address of a row of y in lane l; past the last lane, of the last one."""
    return lane(row, min(l, lane_count(row) - 1)).y + offset


@lanes_kernel(product)
def product_lanes(row: ProductRow) -> None:
    """Compute panel by panel, row by row, eight or four lanes at a time."""
    M, rows_x, rows_y, T, taps, K, N = row.M, row.rows_x, row.rows_y, row.T, row.taps, row.K, row.N
    weights, bias, scales, accumulate, L = row.W, row.bias, row.scales, row.accumulate, lane_count(row)
    n = 0
    while n < N:
        w, rest, width = weights + n * T * K, N - n, panel_width(N - n)
        panel = taps, T, K, w, bias + n, offset_scales(scales, n), rest, accumulate
        for m in range(M):
            at_x, at_y, l = rows_x[m], rows_y[m] + n, 0
            while HAS_AVX512 and width > LANES and l + 4 < L:
                eight = each(add, l, EIGHT)
                eight_x, eight_y = each(lane_x, row, eight, at_x), each(lane_y, row, eight, at_y)
                multiply_rows_wide(eight_x, eight_y, panel)
                l += 8
            while l + 1 < L:
                four = each(add, l, FOUR)
                four_x, four_y = each(lane_x, row, four, at_x), each(lane_y, row, four, at_y)
                multiply_four_rows(four_x, four_y, panel)
                l += 4
            if l < L:
                x0, y0 = lane_x(row, l, at_x), lane_y(row, l, at_y)
                if width > LANES:
                    multiply_row_wide(x0, y0, panel)
                else:
                    multiply_row_narrow(x0, y0, panel)
        n += width
    for l in range(L):
        epilogue(lane(row, l).epilogue, lane(row, l).y, rows_y, M, N)
