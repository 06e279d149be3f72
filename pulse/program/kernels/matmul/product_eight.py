"""Blocks of a product with eight rows: 24, 16 or 8 columns of packed weights."""

from operator import add, getitem

from pulse.jit.language.simd import (
    LANES,
    Vector,
    vadd_pairs,
    vbroadcast_twos,
    vfma,
    vfma_half,
    vindex,
    vinterleave_first,
    vload,
    vload_first,
    vload_part,
    vload_second,
    vlt,
    vrotate_by_eight,
    vselect,
    vsplat,
    vzero,
)
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.blocks import EIGHT, EVEN, ODD, Three, row_at
from pulse.program.kernels.matmul.product_blocks import (
    HALF,
    PANEL,
    initial_wide_sums,
    store_columns,
    store_wide,
)
from pulse.program.kernels.matmul.scales import Scales, begin_sum, end_sum


@device
def first_halves(a: Vector, b: Vector) -> Vector:
    """Return the first eight lanes of both."""
    return vselect(vlt(vindex(), HALF), a, vrotate_by_eight(b))


@device
def second_and_first_half(a: Vector, b: Vector) -> Vector:
    """Return the last eight lanes of a and the first eight of b."""
    return vselect(vlt(vindex(), HALF), vrotate_by_eight(a), vrotate_by_eight(b))


@device
def begin_three(left0: Vector, right0: Vector, left1: Vector, right1: Vector, scales: Scales) -> Three:
    """Return the sums of two rows of 24 columns as three full vectors: 16 columns of the first, 8 of each, 16 of the
    second.
    """
    low0, high0, low1 = begin_sum(left0, scales), begin_sum(right0, scales), begin_sum(left1, scales)
    return low0, first_halves(high0, low1), second_and_first_half(low1, begin_sum(right1, scales))


@device
def add_two_rows(
    sums: Three, p: Pointer, q: Pointer, k: int, lower: Vector, first: Vector, middle: Vector, last: Vector
) -> Three:
    """Add the products of an input of two rows with 24 columns."""
    (a, b, c), u, v = sums, vsplat(p[k]), vsplat(q[k])
    return vfma(u, first, a), vfma(vselect(lower, u, v), middle, b), vfma(v, last, c)


@device
def store_two_rows(
    y0: Pointer, y1: Pointer, sums: Three, left0: Vector, right0: Vector, left1: Vector, right1: Vector,
    scales: Scales, rest: int,
) -> None:  # fmt: skip
    """Store the sums of two rows of 24 columns."""
    a, b, c = sums
    store_wide(y0, a, b, left0, right0, scales, rest)
    store_wide(y1, second_and_first_half(b, c), vrotate_by_eight(c), left1, right1, scales, rest)


@device
def multiply_eight_rows_by_24(
    x: Pointer, rows_x: Pointer, taps: Pointer, T: int, K: int, w: Pointer, bias: Pointer, scales: Scales,
    y: Pointer, rows_y: Pointer, rest: int, accumulate: int, M: int,
) -> None:  # fmt: skip
    """Multiply eight rows by a panel of up to 24 columns: two rows share three registers.

    M is at least 8. The compiler does not know this, so it selects by a mask, which any port can do; it would make
    permutations of a constant mask, and those take turns with the products.
    """
    y0, y1 = each(row_at, y, rows_y, EVEN), each(row_at, y, rows_y, ODD)
    left0, right0 = initial_wide_sums(bias, y0, rest, accumulate)
    left1, right1 = initial_wide_sums(bias, y1, rest, accumulate)
    sums, lower = each(begin_three, left0, right0, left1, right1, scales), vlt(vindex(), min(HALF, M))
    for t in range(T):
        p = x + taps[t]
        p0, p1 = each(row_at, p, rows_x, EVEN), each(row_at, p, rows_x, ODD)
        for k in range(K):
            first, middle = vload_first(w, 0), vload_second(w, 0)
            sums = each(
                add_two_rows, sums, p0, p1, k, lower, first, middle, second_and_first_half(first, middle)
            )
            w = w + PANEL
    each(store_two_rows, y0, y1, sums, left0, right0, left1, right1, scales, rest)


@device
def store_sum(
    y: Pointer, offset: int, rest: int, total: Vector, bias: Vector, scales: Scales, accumulate: int
) -> None:
    """Write the first ``rest`` of 16 sums, plus what is there if it accumulates.

    It is the last step, so that a block does not keep the addresses of its results while it sums.
    """
    p, total = y + offset, end_sum(total, bias, scales, 0, rest)
    if accumulate:
        total = total + vload_part(p, 0, rest)
    store_columns(p, rest, total)


@device
def add_product(total: Vector, p: Pointer, offset: int, column: Vector, half: bool) -> Vector:
    """Add a product to the 16 lanes of a sum, or to the first eight."""
    return vfma_half(p[offset], column, total) if half else vfma(p[offset], column, total)


@device
def multiply_eight_rows_narrow(
    x: Pointer, rows_x: Pointer, taps: Pointer, T: int, K: int, w: Pointer, bias: Pointer, scales: Scales,
    y: Pointer, rows_y: Pointer, rest: int, accumulate: int, half: bool,
) -> None:  # fmt: skip
    """Multiply eight rows by a panel of 16 columns, or of 8 in half registers.

    These are enough independent sums to keep the adders busy.
    """
    b, offsets = vload_part(bias, 0, rest), each(getitem, rows_x, EIGHT)
    sums = copies(begin_sum(b, scales), offsets)
    for t in range(T):
        p = x + taps[t]
        for _ in range(K):
            sums = each(add_product, sums, p, offsets, vload(w, 0), half)
            p, w = p + 1, w + LANES
    each(store_sum, y, each(getitem, rows_y, EIGHT), rest, sums, b, scales, accumulate)


@device
def add_pair(total: Vector, p: Pointer, offset: int, pair: Vector) -> Vector:
    """Add the products of two inputs, in neighbouring lanes."""
    return vfma(vbroadcast_twos(p, offset), pair, total)


@device
def multiply_eight_rows_by_8(
    x: Pointer, rows_x: Pointer, taps: Pointer, T: int, K: int, w: Pointer, bias: Pointer, scales: Scales,
    y: Pointer, rows_y: Pointer, rest: int, accumulate: int,
) -> None:  # fmt: skip
    """Multiply eight rows by a panel of up to 8 columns.

    A register has two inputs of a row for each column, in neighbouring lanes; the last of an odd number of inputs is
    multiplied alone.
    """
    b, even, odd = vload_part(bias, 0, rest), each(getitem, rows_x, EVEN), each(getitem, rows_x, ODD)
    last0 = last1 = copies(begin_sum(b, scales), even)
    sums0 = sums1 = copies(vzero(), even)
    for t in range(T):
        p = x + taps[t]
        for _ in range(K >> 1):
            pair = vinterleave_first(vload(w, 0), vload(w, LANES))
            sums0, sums1 = each(add_pair, sums0, p, even, pair), each(add_pair, sums1, p, odd, pair)
            p, w = p + 2, w + 2 * LANES
        if K & 1:
            column = vload(w, 0)
            last0 = each(add_product, last0, p, even, column, True)
            last1 = each(add_product, last1, p, odd, column, True)
            w = w + LANES
    totals = each(vadd_pairs, sums0, sums1)
    last0, last1 = each(add, totals, last0), each(add, each(vrotate_by_eight, totals), last1)
    each(store_sum, y, each(getitem, rows_y, EVEN), rest, last0, b, scales, accumulate)
    each(store_sum, y, each(getitem, rows_y, ODD), rest, last1, b, scales, accumulate)
