"""Softmax and layer normalisation of contiguous f32 rows."""

from collections.abc import Iterator
from operator import add, mul
from typing import Any

import numpy as np

from pulse.jit.language.simd import (
    BIASED,
    LANES,
    Vector,
    vadd_pairs,
    vexp2_biased,
    vfma,
    vgt,
    vindex,
    vload,
    vload_part,
    vlt,
    vmax,
    vproduct_biased,
    vrotate_by_eight,
    vrotate_by_four,
    vrotate_by_two,
    vrotate_eights,
    vselect,
    vsplat,
    vsqrt,
    vstore,
    vstore_part,
    vsum,
    vzero,
)
from pulse.jit.language.stack import stack_f32
from pulse.jit.language.tuples import each
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Operand, reads
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run, table
from pulse.program.kernels.row_tuples import FOUR, RowsFields, Vectors, element, row_at
from pulse.program.kernels.vmath import INFINITY, LN2_HIGH, LN2_LOW, LOG2_E, exp_fraction, vlog

ONE: Any = np.float32(1)


@device
def mask_of_lanes_below(count: int) -> Any:
    return vlt(vindex(), vsplat(count))


@device
def exp_below(v: Any) -> Any:
    """Return e**v for v <= 0, or 0 if it would be denormal; 2 ulp."""
    v = vmax(v, -88.0)
    n = vproduct_biased(v, LOG2_E)
    whole, scale = n - BIASED, vexp2_biased(n)
    return vfma(exp_fraction(vfma(whole, -LN2_LOW, vfma(whole, -LN2_HIGH, v))), scale, scale)


@device
def larger_or_second(a: Vector, b: Vector) -> Vector:
    """Return the larger of each lane; b if either is NaN."""
    return vselect(vgt(a, b), a, b)


@device
def largest_of_heads(v: Vector, heads: int) -> Vector:
    """Return the largest lane of each head; lane i belongs to head ``i mod heads``."""
    v = larger_or_second(vrotate_by_eight(v), v)
    v = larger_or_second(vrotate_by_four(v), v)
    if heads <= 2:
        v = larger_or_second(vrotate_by_two(v), v)
    if heads == 1:
        v = larger_or_second(vrotate_eights(v), v)
    return v


class NormFields(RowsFields):
    """M rows of R contiguous elements, from x to y; x may be y."""

    R: int

    def cuts(self) -> Iterator[Cut]:
        yield Cut("M", 1, {"rows_x": 1, "rows_y": 1})

    def reaches(self) -> Iterator[Reach]:
        yield self.x, table(self.rows_x, self.M) + run(self.R)
        yield self.y, table(self.rows_y, self.M) + run(self.R)


class SoftmaxRow(NormFields):
    """``y = exp(x - max) / sum(exp(x - max))`` of each row, or its logarithm.

    The result is NaN for a row whose largest element is infinite.
    """

    log: bool

    def work(self) -> int:
        return 16 * self.M * self.R


@kernel
def softmax(row: SoftmaxRow) -> None:
    x, y, rows, rows_x, rows_y, count, log = row.x, row.y, row.M, row.rows_x, row.rows_y, row.R, row.log
    if count == 0:
        return
    full = (count - 1) // LANES * LANES
    rest = count - full
    in_row = mask_of_lanes_below(rest)
    for m in range(rows):
        source, target = x + rows_x[m], y + rows_y[m]
        tail = vselect(in_row, vload_part(source, full, rest), -INFINITY)
        largest = tail
        for i in range(0, full, LANES):
            v = vload(source, i)
            largest = larger_or_second(v, largest)
        top = largest_of_heads(largest, 1)
        tail = tail - top
        powers = vselect(in_row, exp_below(tail), vzero())
        total = powers
        for i in range(0, full, LANES):
            v = vload(source, i) - top
            e = exp_below(v)
            total += e
            vstore(target, i, v if log else e)
        whole: Any = vsum(total)
        factor = vsplat(ONE if log else ONE / whole)
        shift = vzero()
        if log:
            shift = -vlog(vsplat(float(whole)))
        for i in range(0, full, LANES):
            vstore(target, i, vfma(vload(target, i), factor, shift))
        vstore_part(target, full, rest, vfma(tail if log else powers, factor, shift))


class LayerNormRow(NormFields):
    """``y[r] = (x[r] - mean) / sqrt(variance + eps) * scale[r] + bias[r]``, r < R, of each row."""

    scale: Operand = reads("f32", "R")
    bias: Operand = reads("f32", "R")
    eps: float

    def work(self) -> int:
        return 8 * self.M * self.R

    def cuts(self) -> Iterator[Cut]:
        yield Cut("M", len(FOUR), {"rows_x": 1, "rows_y": 1})


@device
def subtract_mean(v: Vector, mean: Vector, in_row: Any) -> Vector:
    """Return the lanes of the row less their mean, the others 0."""
    return vselect(in_row, v - mean, vzero())


@device
def add_square(total: Vector, v: Vector, mean: Vector) -> Vector:
    """Add the squares of the distances from the mean."""
    v = v - mean
    return vfma(v, v, total)


@device
def sum_across(sums: Vectors) -> Vector:
    """Return the sums of the lanes of four vectors, one after the other and repeated."""
    a, b, c, d = sums
    v = vadd_pairs(vadd_pairs(a, b), vadd_pairs(c, d))
    v = vadd_pairs(v, v)
    return vadd_pairs(v, v)


@device
def store_normal(
    target: Pointer, source: Pointer, i: int, mean: Vector, factor: Vector, scale: Vector, bias: Vector
) -> None:
    vstore(target, i, vfma((vload(source, i) - mean) * factor, scale, bias))


@device
def store_normal_tail(
    target: Pointer, i: int, rest: int, tail: Vector, factor: Vector, scale: Vector, bias: Vector
) -> None:
    """Write the last ``rest`` elements of a row, given without their mean."""
    vstore_part(target, i, rest, vfma(tail * factor, scale, bias))


@device
def normalise_four_rows(row: LayerNormRow, m: int, rest: int, moments: Pointer) -> None:
    """Compute four rows from m, whose last vector has ``rest`` elements, with space for 16 numbers."""
    share: Any = ONE / np.float32(row.R)
    eps: Any = np.float32(row.eps)
    full, in_row, scale, bias = row.R - rest, mask_of_lanes_below(rest), row.scale, row.bias
    source, target = each(row_at, row.x, row.rows_x + m, FOUR), each(row_at, row.y, row.rows_y + m, FOUR)
    sums = tail = each(vload_part, source, full, rest)
    for i in range(0, full, LANES):
        sums = each(add, sums, each(vload, source, i))
    vstore(moments, 0, sum_across(sums) * share)
    mean = each(element, moments, FOUR)
    tail = each(subtract_mean, tail, mean, in_row)
    sums = each(mul, tail, tail)
    for i in range(0, full, LANES):
        sums = each(add_square, sums, each(vload, source, i), mean)
    vstore(moments, 0, 1.0 / vsqrt(vfma(sum_across(sums), share, eps)))
    factor = each(element, moments, FOUR)
    for i in range(0, full, LANES):
        each(store_normal, target, source, i, mean, factor, vload(scale, i), vload(bias, i))
    each(
        store_normal_tail, target, full, rest, tail, factor,
        vload_part(scale, full, rest), vload_part(bias, full, rest),
    )  # fmt: skip


@device
def normalise_rows(row: LayerNormRow, rest: int) -> None:
    """Compute all rows, whose last vector has ``rest`` elements."""
    x, scale, bias, y, rows, rows_x, rows_y = row.x, row.scale, row.bias, row.y, row.M, row.rows_x, row.rows_y
    size, eps, full = np.float32(row.R), np.float32(row.eps), row.R - rest
    in_row, moments, first = mask_of_lanes_below(rest), stack_f32(LANES), 0
    while first + 4 <= rows:
        normalise_four_rows(row, first, rest, moments)
        first += 4
    for m in range(first, rows):
        source, target = x + rows_x[m], y + rows_y[m]
        tail = vload_part(source, full, rest)
        sums = tail
        for i in range(0, full, LANES):
            sums += vload(source, i)
        whole: Any = vsum(sums)
        mean = vsplat(whole / size)
        tail = subtract_mean(tail, mean, in_row)
        squares = tail * tail
        for i in range(0, full, LANES):
            squares = add_square(squares, vload(source, i), mean)
        spread: Any = vsum(squares)
        factor = 1.0 / vsqrt(vsplat(spread / size + eps))
        for i in range(0, full, LANES):
            store_normal(target, source, i, mean, factor, vload(scale, i), vload(bias, i))
        weight, offset = vload_part(scale, full, rest), vload_part(bias, full, rest)
        store_normal_tail(target, full, rest, tail, factor, weight, offset)


@kernel
def layer_norm(row: LayerNormRow) -> None:
    """Compute four rows at a time, then the others; whole vectors have no masks."""
    if row.R % LANES:
        normalise_rows(row, row.R % LANES)
    elif row.R > 0:
        normalise_rows(row, LANES)
