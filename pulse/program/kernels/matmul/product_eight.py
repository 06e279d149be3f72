"""Blocks of a product with eight rows: 24, 16 or 8 columns of packed weights."""

from operator import add, getitem

from pulse.jit.language.simd import (
    LANES,
    Vector,
    vadd_pairs,
    vbroadcast_twos,
    veq,
    vfloor,
    vfma,
    vfma_half,
    vindex,
    vinterleave_first,
    vinterleave_second,
    vload,
    vload_first,
    vload_part,
    vload_second,
    vrotate_by_eight,
    vselect,
    vzero,
)
from pulse.jit.language.tuples import copies, each
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.matmul.product_blocks import PANEL, Panel, store_columns
from pulse.program.kernels.matmul.scales import Scales, begin_sum, end_sum, offset_scales
from pulse.program.kernels.row_tuples import EIGHT, EVEN, ODD, Three


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
    x: Pointer, rows_x: Pointer, y: Pointer, rows_y: Pointer, panel: Panel, half: bool
) -> None:
    """Multiply eight rows by a panel of 16 columns, or of 8 in half registers.

    These are enough independent sums to keep the adders busy.
    """
    taps, T, K, w, bias, scales, rest, accumulate = panel
    b, offsets = vload_part(bias, 0, rest), each(getitem, rows_x, EIGHT)
    sums = copies(begin_sum(b, scales), offsets)
    for t in range(T):
        p = x + taps[t]
        for _ in range(K):
            sums = each(add_product, sums, p, offsets, vload(w, 0), half)
            p, w = p + 1, w + LANES
    each(store_sum, y, each(getitem, rows_y, EIGHT), rest, sums, b, scales, accumulate)


@device
def is_even_lane() -> Vector:
    """Return the mask of each second lane, from the first one."""
    half = vindex() * 0.5
    return veq(vfloor(half), half)


@device
def add_pair(total: Vector, p: Pointer, offset: int, pair: Vector) -> Vector:
    """Add the products of two inputs with 8 columns, in neighbouring lanes."""
    return vfma(vbroadcast_twos(p, offset), pair, total)


@device
def add_three_pairs(
    sums: Three, p: Pointer, offset: int, first: Vector, second: Vector, third: Vector
) -> Three:
    """Add the products of two inputs with 24 columns."""
    (a, b, c), inputs = sums, vbroadcast_twos(p, offset)
    return vfma(inputs, first, a), vfma(inputs, second, b), vfma(inputs, third, c)


@device
def add_last(total: Vector, p: Pointer, offset: int, column: Vector, even: Vector) -> Vector:
    """Add the products of one input with 8 columns, each of which is in two lanes, to the even lanes."""
    return vselect(even, vfma(p[offset], column, total), total)


@device
def add_last_to_three(
    sums: Three, p: Pointer, offset: int, first: Vector, second: Vector, third: Vector, even: Vector
) -> Three:
    """Add the products of one input with 24 columns."""
    a, b, c = sums
    return (
        add_last(a, p, offset, first, even),
        add_last(b, p, offset, second, even),
        add_last(c, p, offset, third, even),
    )


@device
def store_two_rows(
    y: Pointer, offset0: int, offset1: int, rest: int, sums0: Three, sums1: Three, low: Vector, high: Vector,
    scales: Scales, accumulate: int,
) -> None:  # fmt: skip
    """Store two rows of 24 sums in pairs of lanes; ``low`` and ``high`` are the biases of the columns."""
    (a0, b0, c0), (a1, b1, c1) = sums0, sums1
    z, last_scales, tails = y + LANES, offset_scales(scales, LANES), vadd_pairs(c0, c1)
    first, second = begin_sum(low, scales), begin_sum(high, last_scales)
    store_sum(y, offset0, LANES, vadd_pairs(a0, b0) + first, low, scales, accumulate)
    store_sum(y, offset1, LANES, vadd_pairs(a1, b1) + first, low, scales, accumulate)
    store_sum(z, offset0, rest, tails + second, high, last_scales, accumulate)
    store_sum(z, offset1, rest, vrotate_by_eight(tails) + second, high, last_scales, accumulate)


@device
def multiply_eight_rows_by_8(x: Pointer, rows_x: Pointer, y: Pointer, rows_y: Pointer, panel: Panel) -> None:
    """Multiply eight rows by a panel of up to 8 columns.

    A register has two inputs of a row for each column, in neighbouring lanes; the last of an odd number of inputs is
    multiplied alone.
    """
    taps, T, K, w, bias, scales, rest, accumulate = panel
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


@device
def multiply_eight_rows_by_24(x: Pointer, rows_x: Pointer, y: Pointer, rows_y: Pointer, panel: Panel) -> None:
    """Multiply eight rows by a panel of up to 24 columns, as ``multiply_eight_rows_by_8``."""
    taps, T, K, w, bias, scales, rest, accumulate = panel
    offsets0, offsets1, zero = each(getitem, rows_x, EVEN), each(getitem, rows_x, ODD), vzero()
    sums0 = sums1 = copies((zero, zero, zero), offsets0)
    even = is_even_lane()
    for t in range(T):
        p = x + taps[t]
        for _ in range(K >> 1):
            v, u = vload_first(w, 0), vload_first(w, PANEL)
            first, second = vinterleave_first(v, u), vinterleave_second(v, u)
            third = vinterleave_first(vload_second(w, 0), vload_second(w, PANEL))
            sums0 = each(add_three_pairs, sums0, p, offsets0, first, second, third)
            sums1 = each(add_three_pairs, sums1, p, offsets1, first, second, third)
            p, w = p + 2, w + 2 * PANEL
        if K & 1:
            v, u = vload_first(w, 0), vload_second(w, 0)
            first, second, third = vinterleave_first(v, v), vinterleave_second(v, v), vinterleave_first(u, u)
            sums0 = each(add_last_to_three, sums0, p, offsets0, first, second, third, even)
            sums1 = each(add_last_to_three, sums1, p, offsets1, first, second, third, even)
            w = w + PANEL
    beyond = rest - LANES
    low, high = vload(bias, 0), vload_part(bias + LANES, 0, beyond)
    each(
        store_two_rows, y, each(getitem, rows_y, EVEN), each(getitem, rows_y, ODD), beyond, sums0, sums1, low, high,
        scales, accumulate,
    )  # fmt: skip
