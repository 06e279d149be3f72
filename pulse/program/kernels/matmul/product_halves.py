"""A block of a product with eight rows and 24 columns, in half registers.

It is for processors without ``HAS_WHOLE_REGISTERS``: eight columns are half a register, and nothing is rearranged.
``product_eight`` has the same block in whole registers.
"""

from pulse.jit.language.simd import (
    Vector,
    vfma_half,
    vindex,
    vload_first,
    vload_second,
    vlt,
    vrotate_by_eight,
    vselect,
)
from pulse.jit.language.tuples import each
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.blocks import EIGHT, Three, row_at
from pulse.program.kernels.matmul.product_blocks import HALF, PANEL, initial_wide_sums, store_wide
from pulse.program.kernels.matmul.scales import Scales, begin_sum


@device
def first_halves(a: Vector, b: Vector) -> Vector:
    """Return the first eight lanes of both."""
    return vselect(vlt(vindex(), HALF), a, vrotate_by_eight(b))


@device
def begin_halves(left: Vector, right: Vector, scales: Scales) -> Three:
    """Return the sums of 24 columns as three halves."""
    low = begin_sum(left, scales)
    return low, vrotate_by_eight(low), begin_sum(right, scales)


@device
def add_to_halves(sums: Three, row: Pointer, k: int, u: Vector, v: Vector, w: Vector) -> Three:
    """Add the products of an input with 24 columns."""
    a, b, c = sums
    return vfma_half(row[k], u, a), vfma_half(row[k], v, b), vfma_half(row[k], w, c)


@device
def store_halves(y: Pointer, sums: Three, left: Vector, right: Vector, scales: Scales, rest: int) -> None:
    """Store the sums of 24 columns."""
    a, b, c = sums
    store_wide(y, first_halves(a, b), c, left, right, scales, rest)


@device
def multiply_eight_rows_by_three_halves(
    x: Pointer, rows_x: Pointer, taps: Pointer, T: int, K: int, w: Pointer, bias: Pointer, scales: Scales,
    y: Pointer, rows_y: Pointer, rest: int, accumulate: int,
) -> None:  # fmt: skip
    """Multiply eight rows by a panel of up to 24 columns."""
    target = each(row_at, y, rows_y, EIGHT)
    left, right = initial_wide_sums(bias, target, rest, accumulate)
    sums = each(begin_halves, left, right, scales)
    for t in range(T):
        rows = each(row_at, x + taps[t], rows_x, EIGHT)
        for k in range(K):
            u = vload_first(w, 0)
            sums = each(add_to_halves, sums, rows, k, u, vrotate_by_eight(u), vload_second(w, 0))
            w = w + PANEL
    each(store_halves, target, sums, left, right, scales, rest)
