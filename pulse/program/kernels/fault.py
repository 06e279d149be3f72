"""Values of an operand for which its node has no result, counted."""

import numpy as np

from pulse.program.kernels.pointer import Bases, Pointer, Row, f32, f64, i32, i64, number, real, u8
from pulse.program.kernels.registry import device, kernel

F32, F64, I64, I32, U8, I8 = range(6)
BETWEEN, WITHIN, NONZERO = range(3)


@device
def reals_outside(p: Pointer, count: int, step: int, above: float, below: float) -> int:
    """How many of ``p[i*step]``, i < count, are not between two numbers; NaN never is."""
    found = 0
    if step == 1:
        for i in range(count):
            found += 0 if above < np.float64(p[i]) < below else 1
    else:
        for i in range(count):
            found += 0 if above < np.float64(p[i * step]) < below else 1
    return found


@device
def integers_outside(p: Pointer, count: int, step: int, low: int, high: int) -> int:
    """The same of integers outside of low … high."""
    found = 0
    if step == 1:
        for i in range(count):
            found += 1 if (p[i] < low) | (p[i] > high) else 0
    else:
        for i in range(count):
            found += 1 if (p[i * step] < low) | (p[i * step] > high) else 0
    return found


@device
def zeros(p: Pointer, count: int, step: int) -> int:
    """The same of zeros."""
    found = 0
    if step == 1:
        for i in range(count):
            found += 1 if p[i] == 0 else 0
    else:
        for i in range(count):
            found += 1 if p[i * step] == 0 else 0
    return found


@device
def bytes_outside(p: Pointer, count: int, step: int, low: int, high: int) -> int:
    """The same of signed bytes outside of low … high."""
    found = 0
    for i in range(count):
        value = int(p[i * step])
        value -= 256 if value > 127 else 0
        found += 1 if (value < low) | (value > high) else 0
    return found


@device
def run_outside(row: Row, bases: Bases, start: int, count: int, step: int) -> int:
    """The faults of one run of the operand."""
    dtype, mode, low, high = number(row, 17), number(row, 18), number(row, 19), number(row, 20)
    found = 0
    if dtype == F32:
        found = reals_outside(f32(row, bases, 0) + start, count, step, real(row, 19), real(row, 20))
    elif dtype == F64:
        found = reals_outside(f64(row, bases, 0) + start, count, step, real(row, 19), real(row, 20))
    elif dtype == I64 and mode == NONZERO:
        found = zeros(i64(row, bases, 0) + start, count, step)
    elif dtype == I64:
        found = integers_outside(i64(row, bases, 0) + start, count, step, low, high)
    elif dtype == I32 and mode == NONZERO:
        found = zeros(i32(row, bases, 0) + start, count, step)
    elif dtype == I32:
        found = integers_outside(i32(row, bases, 0) + start, count, step, low, high)
    elif mode == NONZERO:
        found = zeros(u8(row, bases, 0) + start, count, step)
    elif dtype == U8:
        found = integers_outside(u8(row, bases, 0) + start, count, step, low, high)
    else:
        found = bytes_outside(u8(row, bases, 0) + start, count, step, low, high)
    return found


@kernel
def count_faults(row: Row, bases: Bases) -> None:
    """Add to ``own`` and ``total`` how many elements x[f, i0, i1, i2] of frames of the stream have no result.

    Frame f < F is of the stream if ``begin <= clock*P + shift + f < end``; none is before ``clock >= gate``.
    Mode 0 (reals): those not between two numbers, both excluded; 1 (integers): those outside of low … high;
    2 (integers): zeros.
    Arguments: x, own, total, clock, gate, begin, end (operands; all but x int64), P, shift, F, elements from frame to
    frame of x, sizes s0..s2, strides t0..t2, dtype code (0 f32, 1 f64, 2 i64, 3 i32, 4 u8, 5 i8), mode, low, high
    (int64; bits of two reals in mode 0).
    """
    clock = i64(row, bases, 3)[0]
    if clock < i64(row, bases, 4)[0]:
        return
    frames, first = number(row, 9), clock * number(row, 7) + number(row, 8)
    start = min(max(i64(row, bases, 5)[0] - first, 0), frames)
    stop = min(max(i64(row, bases, 6)[0] - first, start), frames)
    count, step, size, stride = stop - start, number(row, 10), number(row, 13), number(row, 16)
    if count * size == 0:
        return
    outer, inner = size, stride  # the loop around a run, of which the longer one is made
    if step == size * stride:
        count, step, at, outer = count * size, stride, start * step, 1
    elif count < size:
        at, count, step, outer, inner = start * step, size, stride, count, step
    else:
        at = start * step
    found = 0
    for i0 in range(number(row, 11)):
        for i1 in range(number(row, 12)):
            for i2 in range(outer):
                place = at + i0 * number(row, 14) + i1 * number(row, 15) + i2 * inner
                found += run_outside(row, bases, place, count, step)
    if found > 0:
        own, total = i64(row, bases, 1), i64(row, bases, 2)
        own[0] = own[0] + found
        total[0] = total[0] + found
