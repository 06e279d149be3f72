"""Softmax and layer normalisation of contiguous f32 rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pulse.jit.language.simd import (
    BIASED,
    LANES,
    Vector,
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
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.span import Reach, run, table
from pulse.program.kernels.vmath import INFINITY, LN2_HIGH, LN2_LOW, LOG2_E, exp_fraction, vlog

ONE: Any = np.float32(1)


@device
def mask_of_lanes_below(count: int) -> Any:
    """Return the mask of the lanes below ``count``."""
    return vlt(vindex(), vsplat(count))


@device
def exp_below(v: Any) -> Any:
    """Return e**v for v <= 0, or 0 if it would be denormal; 2 ulp."""
    v = vmax(v, -88.0)
    n = vproduct_biased(v, LOG2_E)
    whole, scale = n - BIASED, vexp2_biased(n)
    return vfma(exp_fraction(vfma(whole, -LN2_LOW, vfma(whole, -LN2_HIGH, v))), scale, scale)


@device
def maximum(a: Vector, b: Vector) -> Vector:
    """Return the larger of each lane; b if a is NaN."""
    return vselect(vgt(a, b), a, b)


@device
def largest_of_heads(v: Vector, heads: int) -> Vector:
    """Return the largest lane of each head; lane i belongs to head ``i mod heads``."""
    v = maximum(vrotate_by_eight(v), v)
    v = maximum(vrotate_by_four(v), v)
    if heads <= 2:
        v = maximum(vrotate_by_two(v), v)
    if heads == 1:
        v = maximum(vrotate_eights(v), v)
    return v


class NormFields(Instruction):
    """M rows of R contiguous elements, from x to y; x may be y."""

    x: Operand = reads("f32")
    y: Operand = writes("f32")
    M: int
    rows_x: Operand = reads("i64", "M")
    rows_y: Operand = reads("i64", "M")
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
    """Compute row by row."""
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
            largest = maximum(v, largest)
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


@device
def normalise_rows(row: LayerNormRow, rest: int) -> None:
    """Compute all rows, whose last vector has ``rest`` elements."""
    x, scale, bias, y, rows, rows_x, rows_y = row.x, row.scale, row.bias, row.y, row.M, row.rows_x, row.rows_y
    size, eps, full = np.float32(row.R), np.float32(row.eps), row.R - rest
    in_row = mask_of_lanes_below(rest)
    for m in range(rows):
        source, target = x + rows_x[m], y + rows_y[m]
        tail = vload_part(source, full, rest)
        sums = tail
        for i in range(0, full, LANES):
            sums += vload(source, i)
        whole: Any = vsum(sums)
        mean = vsplat(whole / size)
        tail = vselect(in_row, tail - mean, vzero())
        squares = tail * tail
        for i in range(0, full, LANES):
            v = vload(source, i) - mean
            squares = vfma(v, v, squares)
        spread: Any = vsum(squares)
        factor = 1.0 / vsqrt(vsplat(spread / size + eps))
        for i in range(0, full, LANES):
            v = (vload(source, i) - mean) * factor
            vstore(target, i, vfma(v, vload(scale, i), vload(bias, i)))
        weight, offset = vload_part(scale, full, rest), vload_part(bias, full, rest)
        vstore_part(target, full, rest, vfma(tail * factor, weight, offset))


@kernel
def layer_norm(row: LayerNormRow) -> None:
    """Compute row by row; whole vectors have no masks."""
    if row.R % LANES:
        normalise_rows(row, row.R % LANES)
    elif row.R > 0:
        normalise_rows(row, LANES)
