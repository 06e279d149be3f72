"""Products for several streams: a block of eight or four lanes shares one reading of the weights."""

from pulse.jit.lanes import lane, lane_count
from pulse.jit.language.simd import LANES
from pulse.jit.registers import HAS_REGISTERS_FOR_EIGHT
from pulse.jit.registry import device, lanes_kernel
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul.finish import finish
from pulse.program.kernels.matmul.product import ProductRow, product
from pulse.program.kernels.matmul.product_blocks import (
    multiply_four_rows,
    multiply_row_narrow,
    multiply_row_wide,
    panel_width,
)
from pulse.program.kernels.matmul.product_eight import multiply_eight_rows_wide
from pulse.program.kernels.matmul.scales import offset_scales


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
        w, b, s, rest = weights + n * T * K, bias + n, offset_scales(scales, n), N - n
        width = panel_width(rest)
        for m in range(M):
            at_x, at_y, l = rows_x[m], rows_y[m] + n, 0
            while HAS_REGISTERS_FOR_EIGHT and width > LANES and l + 4 < L:
                x0, x1 = lane_x(row, l, at_x), lane_x(row, l + 1, at_x)
                x2, x3 = lane_x(row, l + 2, at_x), lane_x(row, l + 3, at_x)
                x4, x5 = lane_x(row, l + 4, at_x), lane_x(row, l + 5, at_x)
                x6, x7 = lane_x(row, l + 6, at_x), lane_x(row, l + 7, at_x)
                y0, y1 = lane_y(row, l, at_y), lane_y(row, l + 1, at_y)
                y2, y3 = lane_y(row, l + 2, at_y), lane_y(row, l + 3, at_y)
                y4, y5 = lane_y(row, l + 4, at_y), lane_y(row, l + 5, at_y)
                y6, y7 = lane_y(row, l + 6, at_y), lane_y(row, l + 7, at_y)
                multiply_eight_rows_wide(
                    x0, x1, x2, x3, x4, x5, x6, x7, taps, T, K, w, b, s,
                    y0, y1, y2, y3, y4, y5, y6, y7, rest, accumulate,
                )  # fmt: skip
                l += 8
            while l + 1 < L:
                x0, x1 = lane_x(row, l, at_x), lane_x(row, l + 1, at_x)
                x2, x3 = lane_x(row, l + 2, at_x), lane_x(row, l + 3, at_x)
                y0, y1 = lane_y(row, l, at_y), lane_y(row, l + 1, at_y)
                y2, y3 = lane_y(row, l + 2, at_y), lane_y(row, l + 3, at_y)
                multiply_four_rows(x0, x1, x2, x3, taps, T, K, w, b, s, y0, y1, y2, y3, rest, accumulate)
                l += 4
            if l < L:
                x0, y0 = lane_x(row, l, at_x), lane_y(row, l, at_y)
                if width > LANES:
                    multiply_row_wide(x0, taps, T, K, w, b, s, y0, rest, accumulate)
                else:
                    multiply_row_narrow(x0, taps, T, K, w, b, s, y0, rest, accumulate)
        n += width
    for l in range(L):
        finish(lane(row, l).finish, lane(row, l).y, rows_y, M, N)
