"""Count the values of an operand for which its node has no result."""

from collections.abc import Iterator

import numpy as np

from pulse.jit.language.raw import as_f32, as_f64, as_i16, as_i32, as_i64, as_u16
from pulse.jit.language.simd import LANES, vgt, vload, vlt, vselect, vsplat, vsum, vzero
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, updates
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, run
from pulse.program.kernels.dtypes import (
    F32_CODE,
    F64_CODE,
    I16_CODE,
    I32_CODE,
    I64_CODE,
    U8_CODE,
    U16_CODE,
    width_of,
)

BETWEEN, WITHIN, NONZERO = range(3)
"""The modes of ``CountFaultsRow``: reals between two numbers, integers within two, integers that are not zero."""


@device
def count_reals_outside(p: Pointer, count: int, step: int, above: float, below: float) -> int:
    """Return how many of ``p[i*step]``, i < count, are not between two numbers; NaN always counts."""
    faults = 0
    if step == 1:
        for i in range(count):
            faults += 0 if above < np.float64(p[i]) < below else 1
    else:
        for i in range(count):
            faults += 0 if above < np.float64(p[i * step]) < below else 1
    return faults


@device
def count_floats_outside(p: Pointer, count: int, step: int, above: float, below: float) -> int:
    """Do ``count_reals_outside`` for f32; whole vectors at a time if f32 has both numbers exactly."""
    first, faults = 0, 0
    if step == 1 and np.float64(np.float32(above)) == above and np.float64(np.float32(below)) == below:
        valid, one = vzero(), vsplat(1.0)
        while first + LANES <= count:
            v = vload(p, first)
            valid = valid + vselect(vgt(v, above) & vlt(v, below), one, vzero())
            first += LANES
        faults = first - int(vsum(valid))
    return faults + count_reals_outside(p + first, count - first, step, above, below)


@device
def count_integers_outside(p: Pointer, count: int, step: int, low: int, high: int) -> int:
    """Return how many are outside low … high."""
    faults = 0
    if step == 1:
        for i in range(count):
            faults += 1 if (p[i] < low) | (p[i] > high) else 0
    else:
        for i in range(count):
            faults += 1 if (p[i * step] < low) | (p[i * step] > high) else 0
    return faults


@device
def count_zeros(p: Pointer, count: int, step: int) -> int:
    faults = 0
    if step == 1:
        for i in range(count):
            faults += 1 if p[i] == 0 else 0
    else:
        for i in range(count):
            faults += 1 if p[i * step] == 0 else 0
    return faults


@device
def count_bytes_outside(p: Pointer, count: int, step: int, low: int, high: int) -> int:
    """Return how many signed bytes are outside low … high."""
    faults = 0
    for i in range(count):
        value = int(p[i * step])
        value -= 256 if value > 127 else 0
        faults += 1 if (value < low) | (value > high) else 0
    return faults


class CountFaultsRow(Instruction):
    """Add to ``own`` and ``total`` how many elements x[f, i0, i1, i2] of frames of the stream have no result.

    Frame f < F belongs to the stream if ``begin <= clock*P + shift + f < end``, from ``clock >= gate`` on.
    Mode 0 (reals) counts those not between ``above`` and ``below``, both excluded; 1 (integers): those outside
    low … high; 2 (integers): zeros. Frames are ``step`` elements apart, each has ``s`` elements with strides ``t``.
    """

    DATA = ("low", "high")
    x: Operand = reads(None)
    own: Operand = updates("i64", 1, rarely=True)
    total: Operand = updates("i64", 1, rarely=True)
    clock: Operand = reads("i64", 1)
    gate: Operand = reads("i64", 1)
    begin: Operand = reads("i64", 1)
    end: Operand = reads("i64", 1)
    P: int
    shift: int
    F: int
    step: int
    s0: int
    s1: int
    s2: int
    t0: int
    t1: int
    t2: int
    dtype: int
    mode: int
    above: float
    below: float
    low: int
    high: int

    def reaches(self) -> Iterator[Reach]:
        inside = run(self.s0, self.t0) + run(self.s1, self.t1) + run(self.s2, self.t2)
        yield self.x, (run(self.F, self.step) + inside) * width_of(self.dtype)


@device
def count_run_faults(row: CountFaultsRow, start: int, count: int, step: int) -> int:
    """Return the number of faults in one run of the operand."""
    x, dtype, mode, low, high = row.x, row.dtype, row.mode, row.low, row.high
    faults = 0
    if dtype == F32_CODE:
        faults = count_floats_outside(as_f32(x) + start, count, step, row.above, row.below)
    elif dtype == F64_CODE:
        faults = count_reals_outside(as_f64(x) + start, count, step, row.above, row.below)
    elif dtype == I64_CODE and mode == NONZERO:
        faults = count_zeros(as_i64(x) + start, count, step)
    elif dtype == I64_CODE:
        faults = count_integers_outside(as_i64(x) + start, count, step, low, high)
    elif dtype == I32_CODE and mode == NONZERO:
        faults = count_zeros(as_i32(x) + start, count, step)
    elif dtype == I32_CODE:
        faults = count_integers_outside(as_i32(x) + start, count, step, low, high)
    elif dtype == I16_CODE and mode == NONZERO:
        faults = count_zeros(as_i16(x) + start, count, step)
    elif dtype == I16_CODE:
        faults = count_integers_outside(as_i16(x) + start, count, step, low, high)
    elif dtype == U16_CODE and mode == NONZERO:
        faults = count_zeros(as_u16(x) + start, count, step)
    elif dtype == U16_CODE:
        faults = count_integers_outside(as_u16(x) + start, count, step, low, high)
    elif mode == NONZERO:
        faults = count_zeros(x + start, count, step)
    elif dtype == U8_CODE:
        faults = count_integers_outside(x + start, count, step, low, high)
    else:
        faults = count_bytes_outside(x + start, count, step, low, high)
    return faults


@kernel
def count_faults(row: CountFaultsRow) -> None:
    """Check the frames of the stream in the longest possible runs."""
    clock = row.clock[0]
    if clock < row.gate[0]:
        return
    frames, first = row.F, clock * row.P + row.shift
    start = min(max(row.begin[0] - first, 0), frames)
    stop = min(max(row.end[0] - first, start), frames)
    count, step, size, stride = stop - start, row.step, row.s2, row.t2
    if count * size == 0:
        return
    outer_count, outer_step = size, stride  # the longer of the two loops becomes the run
    if step == size * stride:
        count, step, offset, outer_count = count * size, stride, start * step, 1
    elif count < size:
        offset, count, step, outer_count, outer_step = start * step, size, stride, count, step
    else:
        offset = start * step
    faults = 0
    for i0 in range(row.s0):
        for i1 in range(row.s1):
            for i2 in range(outer_count):
                begin = offset + i0 * row.t0 + i1 * row.t1 + i2 * outer_step
                faults += count_run_faults(row, begin, count, step)
    if faults > 0:
        node_count, total = row.own, row.total
        node_count[0] = node_count[0] + faults
        total[0] = total[0] + faults
