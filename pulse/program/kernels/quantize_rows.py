"""Rows of floats as codes of int8, each row with a unit of its own."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from pulse.jit.byte_dots import BYTES, vstore_bytes
from pulse.jit.instruction import Instruction, Operand, reads, writes
from pulse.jit.pointer import Pointer
from pulse.jit.raw import as_i32, as_u8
from pulse.jit.registry import device, kernel
from pulse.jit.simd import (
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
from pulse.jit.span import Reach, run, table
from pulse.ops.quantize_rows import LARGEST_CODE, LARGEST_ROW, SMALLEST, ZERO_CODE

CodedRow: TypeAlias = tuple[Pointer, float, int]
"""Its codes as words of four, their unit, and what ``ZERO_CODE`` in the weights adds to a sum, with the other sign."""

ROW_FLOATS = LARGEST_ROW // BYTES + LANES
"""Float32 of the memory for the codes of a row."""


@device
def unit_of_row(x: Pointer, K: int) -> tuple[float, float]:
    """What a code of the row is worth, and the code of one; NaN and 0 if an element is infinite or NaN."""
    most, other, k = vzero(), vzero(), 0
    while k + 2 * LANES <= K:
        most, other = vmax(most, vabs(vload(x, k))), vmax(other, vabs(vload(x, k + LANES)))
        k += 2 * LANES
    while k < K:
        most = vmax(most, vabs(vload_part(x, k, K - k)))
        k += LANES
    largest = float(vmax_across(vmax(most, other)))
    if largest - largest != 0.0:
        return np.nan, 0.0
    if largest < SMALLEST:
        return 0.0, 0.0
    return largest / LARGEST_CODE, LARGEST_CODE / largest


@device
def encode_row(x: Pointer, K: int, memory: Pointer) -> CodedRow:
    """The codes of K elements to the memory (``ROW_FLOATS``), zeros after the last one and in a row without codes."""
    places, total, k = as_u8(memory), vtoint(vzero()), 0
    unit, factor = unit_of_row(x, K)
    if factor > 0.0:
        while k < K:
            codes = vtoint(vround(vload_part(x, k, K - k) * vsplat(factor)))
            vstore_bytes(places, k, codes)
            total = total + codes
            k += LANES
    while k < K:
        vstore_bytes(places, k, total)
        k += LANES
    return as_i32(memory), unit, int(vsum(vtofloat(total))) * -ZERO_CODE


class RoundRow(Instruction):
    """``y[rows_y[m] + k] = rint(x[rows_x[m] + k] / unit) * unit``, k < K.

    The unit of row m is its largest magnitude / 127; see ``pulse.ops.quantize_rows``.
    """

    x: Operand = reads("f32")
    y: Operand = writes("f32")
    M: int
    rows_x: Operand = reads("i64", "M")
    rows_y: Operand = reads("i64", "M")
    K: int

    def work(self) -> int:
        return 2 * self.M * self.K

    def reaches(self) -> Iterator[Reach]:
        yield self.x, table(self.rows_x, self.M) + run(self.K)
        yield self.y, table(self.rows_y, self.M) + run(self.K)


@kernel
def round_row(row: RoundRow) -> None:
    """Row by row."""
    x, y, rows_x, rows_y, K = row.x, row.y, row.rows_x, row.rows_y, row.K
    for m in range(row.M):
        source, target = x + rows_x[m], y + rows_y[m]
        unit, factor = unit_of_row(source, K)
        for k in range(0, K, LANES):
            codes = vround(vload_part(source, k, K - k) * vsplat(factor))
            vstore_part(target, k, K - k, (codes if factor > 0.0 else vzero()) * vsplat(unit))
