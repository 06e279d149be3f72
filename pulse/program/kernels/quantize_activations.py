"""Encode rows of floats: as int8 codes, each row with its own scale, or as bf16."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from pulse.jit.language.dots import vstore_bytes, vstore_halves
from pulse.jit.language.raw import as_i32, as_u8, as_u16
from pulse.jit.language.simd import (
    LANES,
    vabs,
    vload,
    vload_part,
    vmax,
    vmax_across,
    vround,
    vsplat,
    vstore_part,
    vsum,
    vtofloat,
    vtoint,
    vzero,
)
from pulse.jit.language.stack import stack_f32
from pulse.jit.registry import device, kernel
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run, table
from pulse.ops.quantize_codes import MAX_CODE, MAX_ROW_ELEMENTS, MIN_MAGNITUDE, ZERO_CODE
from pulse.program.kernels.matmul.scales import Scales
from pulse.program.kernels.row_tuples import RowsFields

CodedRow: TypeAlias = tuple[Pointer, float, int]
"""A row as words: int8 codes in fours, their scale, and minus what ``ZERO_CODE`` in the weights adds to a sum;
or bf16 in pairs."""

ROW_FLOATS = MAX_ROW_ELEMENTS // 2 + LANES
"""The f32 elements of the scratch for a row."""


@device
def scale_of_row(x: Pointer, K: int) -> tuple[float, float]:
    """Return the value of one code of the row, and its inverse; 0, 0 for a tiny row; NaN, 0 if not finite."""
    magnitudes, others, k = vzero(), vzero(), 0
    while k + 2 * LANES <= K:
        magnitudes, others = vmax(magnitudes, vabs(vload(x, k))), vmax(others, vabs(vload(x, k + LANES)))
        k += 2 * LANES
    while k < K:
        magnitudes = vmax(magnitudes, vabs(vload_part(x, k, K - k)))
        k += LANES
    largest = float(vmax_across(vmax(magnitudes, others)))
    if largest - largest != 0.0:
        return np.nan, 0.0
    if largest < MIN_MAGNITUDE:
        return 0.0, 0.0
    return largest / MAX_CODE, MAX_CODE / largest


@device
def encode_row(x: Pointer, K: int, scales: Scales, scratch: Pointer) -> CodedRow:
    """Write K elements, padded by zeros, to the scratch (``ROW_FLOATS``): codes for weights with scales, else bf16."""
    if scales is None:
        return write_halves(x, K, scratch)
    return write_codes(x, K, scratch)


@device
def write_halves(x: Pointer, K: int, scratch: Pointer) -> CodedRow:
    """Write K elements as the nearest bf16."""
    target = as_u16(scratch)
    for k in range(0, K, LANES):
        vstore_halves(target, k, vload_part(x, k, K - k))
    return as_i32(scratch), 1.0, 0


@device
def write_codes(x: Pointer, K: int, scratch: Pointer) -> CodedRow:
    """Write K elements as int8 codes; zeros for a row without codes."""
    target, total, k = as_u8(scratch), vtoint(vzero()), 0
    scale, factor = scale_of_row(x, K)
    if factor > 0.0:
        while k < K:
            codes = vtoint(vround(vload_part(x, k, K - k) * vsplat(factor)))
            vstore_bytes(target, k, codes)
            total = total + codes
            k += LANES
    while k < K:
        vstore_bytes(target, k, total)
        k += LANES
    return as_i32(scratch), scale, int(vsum(vtofloat(total))) * -ZERO_CODE


class QuantizeRow(RowsFields):
    """``y[rows_y[m] + k] = rint(x[rows_x[m] + k] / scale) * scale``, k < K; with ``halves`` the nearest bf16.

    The scale of row m is its largest magnitude / 127; see ``pulse.ops.quantize_activations``.
    """

    DATA = ("halves",)

    K: int
    halves: bool

    def work(self) -> int:
        return 2 * self.M * self.K

    def reaches(self) -> Iterator[Reach]:
        yield self.x, table(self.rows_x, self.M) + run(self.K)
        yield self.y, table(self.rows_y, self.M) + run(self.K)


@kernel
def quantize(row: QuantizeRow) -> None:
    x, y, rows_x, rows_y, K, scratch = row.x, row.y, row.rows_x, row.rows_y, row.K, as_u16(stack_f32(LANES))
    for m in range(row.M):
        source, target = x + rows_x[m], y + rows_y[m]
        scale, factor = (1.0, 1.0) if row.halves else scale_of_row(source, K)
        for k in range(0, K, LANES):
            values = vload_part(source, k, K - k)
            if row.halves:
                vstore_halves(scratch, 0, values)
                vstore_part(target, k, K - k, vload(scratch, 0))
            else:
                codes = vround(values * vsplat(factor))
                vstore_part(target, k, K - k, (codes if factor > 0.0 else vzero()) * vsplat(scale))
