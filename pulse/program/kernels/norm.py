"""Softmax and layer normalisation: rows of contiguous float32."""

import math
from typing import Any

from pulse.program.kernels.pointer import Bases, Row, f32, i64, number, real
from pulse.program.kernels.reduce import reduced_max, reduced_sum
from pulse.program.kernels.registry import device, kernel
from pulse.program.kernels.simd import (
    LANES,
    vfma,
    vindex,
    vload_part,
    vlt,
    vselect,
    vsplat,
    vstore_part,
    vsum,
    vzero,
)
from pulse.program.kernels.vmath import vexp


@device
def first(count: int) -> Any:
    """The mask of the lanes below ``count``."""
    return vlt(vindex(), vsplat(count))


@kernel
def softmax_rows(row: Row, bases: Bases) -> None:
    """``y = exp(x - max) / sum(exp(x - max))``, or its logarithm, of rows of R contiguous elements, m < M.

    x may be y. A row whose largest element is infinite gives NaN.
    Arguments: x, y (operands), M, rows_x, rows_y (operands, int64: where rows begin), R, log (0, 1).
    """
    x, y, rows = f32(row, bases, 0), f32(row, bases, 1), number(row, 2)
    rows_x, rows_y, count, log = i64(row, bases, 3), i64(row, bases, 4), number(row, 5), number(row, 6)
    if count == 0:
        return
    for m in range(rows):
        source, target = x + rows_x[m], y + rows_y[m]
        largest = vsplat(reduced_max(source, count, 1))
        total = vzero()
        for i in range(0, count, LANES):
            rest = min(count - i, LANES)
            v = vload_part(source, i, rest) - largest
            e = vexp(v)
            total += vselect(first(rest), e, vzero())
            vstore_part(target, i, rest, v if log else e)
        whole = vsum(total)
        factor = vsplat(1 if log else 1 / whole)
        shift = vsplat(-math.log(whole) if log else 0)
        for i in range(0, count, LANES):
            rest = min(count - i, LANES)
            vstore_part(target, i, rest, vfma(vload_part(target, i, rest), factor, shift))


@kernel
def layernorm_rows(row: Row, bases: Bases) -> None:
    """``y[r] = (x[r] - mean) / sqrt(variance + eps) * scale[r] + bias[r]``, rows of R contiguous elements, m < M.

    Arguments: x, scale, bias, y (operands), M, rows_x, rows_y (operands, int64: where rows begin), R, eps (real).
    """
    x, scale, bias, y = f32(row, bases, 0), f32(row, bases, 1), f32(row, bases, 2), f32(row, bases, 3)
    rows, rows_x, rows_y = number(row, 4), i64(row, bases, 5), i64(row, bases, 6)
    count, eps = number(row, 7), real(row, 8)
    if count == 0:
        return
    for m in range(rows):
        source, target = x + rows_x[m], y + rows_y[m]
        mean = vsplat(reduced_sum(source, count, 1) / count)
        squares = vzero()
        for i in range(0, count, LANES):
            rest = min(count - i, LANES)
            v = vselect(first(rest), vload_part(source, i, rest) - mean, vzero())
            squares = vfma(v, v, squares)
        factor = vsplat(1 / math.sqrt(vsum(squares) / count + eps))
        for i in range(0, count, LANES):
            rest = min(count - i, LANES)
            v = (vload_part(source, i, rest) - mean) * factor
            vstore_part(target, i, rest, vfma(v, vload_part(scale, i, rest), vload_part(bias, i, rest)))
