"""Products of codes for several streams: four lanes share one reading of the weights."""

from operator import add

from pulse.jit.lane_bases import lane, lane_count
from pulse.jit.language.stack import stack_f32
from pulse.jit.language.tuples import each
from pulse.jit.registry import lanes_kernel
from pulse.program.kernels.matmul.epilogue import epilogue
from pulse.program.kernels.matmul.product_codes import (
    CODE_MEMORY,
    HALF_COLUMNS,
    PANEL_COLUMNS,
    ROWS,
    ProductOfCodesRow,
    compute_rows_of_codes,
    product_of_codes,
)


@lanes_kernel(product_of_codes)
def product_of_codes_lanes(row: ProductOfCodesRow) -> None:
    """Compute row by row, four lanes at a time."""
    M, rows_x, rows_y, memory, L = row.M, row.rows_x, row.rows_y, stack_f32(CODE_MEMORY), lane_count(row)
    for m in range(M):
        at_x, at_y, l = rows_x[m], rows_y[m], 0
        while l + ROWS <= L:
            a, b, c, d = lane(row, l), lane(row, l + 1), lane(row, l + 2), lane(row, l + 3)
            x, y = (a.x, b.x, c.x, d.x), (a.y, b.y, c.y, d.y)
            compute_rows_of_codes(row, each(add, x, at_x), each(add, y, at_y), memory, HALF_COLUMNS)
            l += ROWS
        while l < L:
            last = lane(row, l)
            compute_rows_of_codes(row, (last.x + at_x,), (last.y + at_y,), memory, PANEL_COLUMNS)
            l += 1
    for l in range(L):
        epilogue(lane(row, l).epilogue, lane(row, l).y, rows_y, M, row.N)
