"""Sums, products, extremes and their indices, of f32 in vectors and of other types in f64."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pulse.jit.language.simd import (
    LANES,
    vindex,
    vload,
    vload_part,
    vlt,
    vmax,
    vmax_across,
    vmin,
    vmin_across,
    vselect,
    vsplat,
    vsum,
)
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Operand, reads, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run, table
from pulse.program.kernels.row_tuples import RowsFields

SUM, MAX, MIN, PROD, SQUARES = range(5)
"""The kinds of reductions, by their number; sums of squares are for pools only."""
INFINITY = np.float32(np.inf)
Combine = Callable[[Any, Any], Any]
"""A function of two numbers or of two vectors."""
Reduced = Callable[[Pointer, int, int], Any]
"""The reduction of ``count`` elements of x that are ``stride`` apart: (x, count, stride)."""


@device
def add(a: Any, b: Any) -> Any:
    return a + b


@device
def maximum(a: Any, b: Any) -> Any:
    """Return the larger of two numbers; NaN if either is NaN."""
    return b if b > a or b != b else a


@device
def minimum(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers; NaN if either is NaN."""
    return b if b < a or b != b else a


def make_reduction(
    combine: Combine, combine_lanes: Combine, across: Callable[[Any], Any], neutral: Any
) -> Reduced:
    """Make the reduction of ``count`` elements that are ``stride`` apart, for one kind."""
    many = 4 * LANES

    @device
    def contiguous(x: Pointer, count: int) -> Any:
        """Reduce contiguous elements, four vectors at a time."""
        r0, r1, r2, r3 = vsplat(neutral), vsplat(neutral), vsplat(neutral), vsplat(neutral)
        i = 0
        while i + many <= count:
            r0 = combine_lanes(r0, vload(x, i))
            r1 = combine_lanes(r1, vload(x, i + LANES))
            r2 = combine_lanes(r2, vload(x, i + 2 * LANES))
            r3 = combine_lanes(r3, vload(x, i + 3 * LANES))
            i += many
        while i < count:
            rest = count - i
            inside = vlt(vindex(), vsplat(rest))
            r0 = combine_lanes(r0, vselect(inside, vload_part(x, i, min(rest, LANES)), vsplat(neutral)))
            i += LANES
        return across(combine_lanes(combine_lanes(r0, r1), combine_lanes(r2, r3)))

    @device
    def reduce_elements(x: Pointer, count: int, stride: int) -> Any:
        """Reduce elements that are ``stride`` apart."""
        if stride == 1:
            return float(contiguous(x, count))
        r = float(neutral)
        for i in range(count):
            r = combine(r, x[i * stride])
        return r

    return reduce_elements


reduced_sum = make_reduction(add, add, vsum, np.float32(0))
reduced_max = make_reduction(maximum, vmax, vmax_across, -INFINITY)
reduced_min = make_reduction(minimum, vmin, vmin_across, INFINITY)


@device
def reduced_prod(x: Pointer, count: int, stride: int) -> Any:
    """Return the product of ``count`` elements that are ``stride`` apart."""
    r = 1.0
    for i in range(count):
        r *= x[i * stride]
    return r


class ReductionFields(RowsFields):
    """``y[rows_y[m]]`` from the elements ``x[rows_x[m] + r*stride]``, r < R, m < M.

    The kind is 0 (sum), 1 (max), 2 (min) or 3 (product).
    """

    R: int
    stride: int
    kind: int

    def reaches(self) -> Iterator[Reach]:
        yield self.x, table(self.rows_x, self.M) + run(self.R, self.stride)
        yield self.y, table(self.rows_y, self.M)


class ReduceRow(ReductionFields):
    """``y[rows_y[m]] = scale * reduce_{r<R} x[rows_x[m] + r*stride]``, m < M."""

    scale: float


@kernel
def reduce(row: ReduceRow) -> None:
    x, y, rows, rows_x, rows_y = row.x, row.y, row.M, row.rows_x, row.rows_y
    count, stride, kind, scale = row.R, row.stride, row.kind, row.scale
    for m in range(rows):
        p = x + rows_x[m]
        if kind == SUM:
            result = reduced_sum(p, count, stride)
        elif kind == MAX:
            result = reduced_max(p, count, stride)
        elif kind == MIN:
            result = reduced_min(p, count, stride)
        else:
            result = reduced_prod(p, count, stride)
        y[rows_y[m]] = result * scale


class Reduce64Row(ReduceRow):
    """The same of elements in f64, which other types become: exact for integers up to 2**53."""

    x: Operand = reads("f64")
    y: Operand = writes("f64")


@device
def reduce64_elements(x: Pointer, count: int, stride: int, kind: int) -> float:
    """Reduce elements in f64 that are ``stride`` apart, one after the other."""
    r = 0.0 if kind == SUM else -np.inf if kind == MAX else np.inf if kind == MIN else 1.0
    for i in range(count):
        v = x[i * stride]
        if kind == SUM:
            r = add(r, v)
        elif kind == MAX:
            r = maximum(r, v)
        elif kind == MIN:
            r = minimum(r, v)
        else:
            r *= v
    return r


@kernel
def reduce64(row: Reduce64Row) -> None:
    x, y, rows, rows_x, rows_y = row.x, row.y, row.M, row.rows_x, row.rows_y
    count, stride, kind, scale = row.R, row.stride, row.kind, row.scale
    for m in range(rows):
        y[rows_y[m]] = reduce64_elements(x + rows_x[m], count, stride, kind) * scale


@device
def find_index(x: Pointer, count: int, stride: int, value: Any, last: int) -> int:
    """Return the first or last index of a value (NaN matches any NaN); 0 without elements."""
    for k in range(count):
        i = count - 1 - k if last else k
        v = x[i * stride]
        if v == value or (v != v and value != value):
            return i
    return 0


class ArgReduceRow(ReductionFields):
    """``y[rows_y[m]]`` = the r < R of the largest (kind 1) or smallest (2) ``x[rows_x[m] + r*stride]``, m < M.

    ``last``: among equal ones the last, else the first. NaN comes before all numbers.
    """

    y: Operand = writes("i64")
    last: bool


@kernel
def arg_reduce(row: ArgReduceRow) -> None:
    x, y, rows, rows_x, rows_y = row.x, row.y, row.M, row.rows_x, row.rows_y
    count, stride, kind, last = row.R, row.stride, row.kind, row.last
    for m in range(rows):
        p = x + rows_x[m]
        best = reduced_max(p, count, stride) if kind == MAX else reduced_min(p, count, stride)
        y[rows_y[m]] = find_index(p, count, stride, best, last)


class ArgReduce64Row(ArgReduceRow):
    """The same of elements in f64, which other types become: exact for integers up to 2**53."""

    x: Operand = reads("f64")


@kernel
def arg_reduce64(row: ArgReduce64Row) -> None:
    x, y, rows, rows_x, rows_y = row.x, row.y, row.M, row.rows_x, row.rows_y
    count, stride, kind, last = row.R, row.stride, row.kind, row.last
    for m in range(rows):
        p = x + rows_x[m]
        y[rows_y[m]] = find_index(p, count, stride, reduce64_elements(p, count, stride, kind), last)
