"""Chains of elementwise functions on any mix of types, in float64."""

import math

from pulse.jit.language.dispatch import dispatcher
from pulse.jit.language.raw import as_f32, as_f64, as_i16, as_i32, as_i64, as_u16
from pulse.jit.language.stack import stack_f64
from pulse.jit.registry import device, exact_device, kernel
from pulse.jit.rows.pointer import Pointer
from pulse.program.kernels.dtypes import (
    BOOL_CODE,
    F16_CODE,
    F32_CODE,
    F64_CODE,
    I8_CODE,
    I16_CODE,
    I32_CODE,
    I64_CODE,
    U16_CODE,
    width_of,
)
from pulse.program.kernels.elementwise import MAX_REGISTERS, ChainInput, ChainOutput, ChainRow, element_index
from pulse.program.kernels.elementwise_microops import MICRO_OPS, rint64

BLOCK64_ELEMENTS = 64
"""The elements of a register."""
SLOTS64 = MAX_REGISTERS * BLOCK64_ELEMENTS
"""The elements of all registers."""


class Chain64Row(ChainRow):
    """A chain on any mix of types, computed in f64: exact for integers up to 2**53."""

    def width(self, part: ChainInput) -> int:
        return width_of(part.dtype)


apply_float64 = dispatcher("apply_float64", [(scalar, False) for _, scalar in MICRO_OPS.values()], "f64")


@device
def load_elements(p: Pointer, step: int, count: int, d: Pointer) -> None:
    """Set ``d[i] = p[i*step]``, i < count."""
    for i in range(count):
        d[i] = p[i * step]


@exact_device
def value_of_half(bits: int) -> float:
    sign = -1.0 if bits & 0x8000 else 1.0
    exponent, fraction = (bits >> 10) & 31, bits & 1023
    if exponent == 31:
        return sign * math.inf if fraction == 0 else math.nan
    if exponent == 0:
        return sign * fraction * 2.0**-24
    return sign * ((1024 + fraction) << exponent) * 2.0**-25


@exact_device
def bits_of_half(r: Pointer) -> int:
    """Return the bits of the float16 nearest to a float64, ties to even; r is overwritten."""
    value, bits = r[0], as_i64(r)[0]
    sign, exponent, magnitude = (bits >> 48) & 0x8000, ((bits >> 52) & 0x7FF) - 1023, abs(r[0])
    if value != value:
        return sign | 0x7E00
    if magnitude >= 65520.0:
        return sign | 0x7C00
    if exponent < -14:
        return sign | int(rint64(magnitude * 2.0**24))
    as_i64(r)[0] = (1033 - exponent) << 52  # 2**(10 - exponent)
    return sign | (((exponent + 14) << 10) + int(rint64(magnitude * r[0])))


@device
def load64(part: ChainInput, start: int, step: int, count: int, d: Pointer) -> None:
    """Set ``d[i] = operand[start + i*step]``, i < count, from any dtype."""
    tensor, dtype = part.tensor, part.dtype
    if dtype == F32_CODE:
        load_elements(as_f32(tensor) + start, step, count, d)
    elif dtype == F64_CODE:
        load_elements(as_f64(tensor) + start, step, count, d)
    elif dtype == I64_CODE:
        load_elements(as_i64(tensor) + start, step, count, d)
    elif dtype == I32_CODE:
        load_elements(as_i32(tensor) + start, step, count, d)
    elif dtype == I16_CODE:
        load_elements(as_i16(tensor) + start, step, count, d)
    elif dtype == U16_CODE:
        load_elements(as_u16(tensor) + start, step, count, d)
    elif dtype == F16_CODE:
        q16 = as_u16(tensor) + start
        for i in range(count):
            d[i] = value_of_half(q16[i * step])
    else:
        q8 = tensor + start
        for i in range(count):
            value = int(q8[i * step])
            if dtype == I8_CODE and value > 127:
                value -= 256
            if dtype == BOOL_CODE and value != 0:
                value = 1
            d[i] = value


@device
def store_elements(r: Pointer, p: Pointer, step: int, count: int) -> None:
    """Set ``p[i*step] = r[i]``, i < count."""
    for i in range(count):
        p[i * step] = r[i]


@device
def store64(part: ChainOutput, start: int, step: int, count: int, r: Pointer) -> None:
    """Set ``operand[start + i*step] = r[i]`` in any dtype; integers are truncated towards zero, bool is ``!= 0``.

    r is overwritten.
    """
    tensor, dtype = part.tensor, part.dtype
    if dtype == F32_CODE:
        store_elements(r, as_f32(tensor) + start, step, count)
    elif dtype == F64_CODE:
        store_elements(r, as_f64(tensor) + start, step, count)
    elif dtype == I64_CODE:
        q64 = as_i64(tensor) + start
        for i in range(count):
            q64[i * step] = whole_number(r[i])
    elif dtype == I32_CODE:
        q32 = as_i32(tensor) + start
        for i in range(count):
            q32[i * step] = wrap(whole_number(r[i]), 32)
    elif dtype == I16_CODE:
        q16 = as_i16(tensor) + start
        for i in range(count):
            q16[i * step] = wrap(whole_number(r[i]), 16)
    elif dtype == U16_CODE:
        u16 = as_u16(tensor) + start
        for i in range(count):
            u16[i * step] = whole_number(r[i]) & 0xFFFF
    elif dtype == F16_CODE:
        h16 = as_u16(tensor) + start
        for i in range(count):
            h16[i * step] = bits_of_half(r + i)
    else:
        q8 = tensor + start
        for i in range(count):
            if dtype == BOOL_CODE:
                q8[i * step] = 1 if r[i] != 0 else 0
            else:
                q8[i * step] = whole_number(r[i]) & 255


@device
def wrap(value: int, bits: int) -> int:
    """Return the signed number in the low bits."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


@device
def whole_number(value: float) -> int:
    """Truncate towards zero; NaN and values that do not fit become the smallest int64, as in numpy on x86."""
    if -9223372036854775808.0 <= value < 9223372036854775808.0:
        return int(value)
    return -9223372036854775808


@kernel
def chain64(row: Chain64Row) -> None:
    slots = stack_f64(SLOTS64)
    s0, s1, s2, s3, inputs, output, ops = row.s0, row.s1, row.s2, row.s3, row.inputs, row.output, row.ops
    for outer in range(s0 * s1 * s2):
        i0, i1, i2 = outer // (s1 * s2), outer // s2 % s1, outer % s2
        for i3 in range(0, s3, BLOCK64_ELEMENTS):
            count = min(BLOCK64_ELEMENTS, s3 - i3)
            for k in range(row.input_count):
                part = inputs[k]
                load64(
                    part, element_index(part, i0, i1, i2, i3), part.step3, count, slots + k * BLOCK64_ELEMENTS
                )
            result = slots
            for j in range(row.op_count):
                op = ops[j]
                result = slots + op.target * BLOCK64_ELEMENTS
                a, b, c = (
                    slots + op.a * BLOCK64_ELEMENTS,
                    slots + op.b * BLOCK64_ELEMENTS,
                    slots + op.c * BLOCK64_ELEMENTS,
                )
                apply_float64(op.code, result, a, b, c, count, op.p, op.q)
            store64(output, element_index(output, i0, i1, i2, i3), output.step3, count, result)
