"""Chains of elementwise functions in one pass over memory: interpreters of micro-ops on register blocks.

A row: sizes s0..s3 (s3 innermost), number of inputs (at most 8), of micro-ops; for each input, then for the
output, six words: operand, dtype code, strides t0..t3 in elements; for each micro-op seven words: opcode,
target register, registers a b c, parameters p q (reals). Inputs are registers 0, 1 …, there are 16 registers,
and the last target (register 0 where there is no micro-op) is stored.

dtype codes: 0 f32, 1 f64, 2 i64, 3 i32, 4 u8, 5 i8, 6 bool (bytes; any but 0 is loaded as 1).
"""

from pulse.program.kernels import stack_lowering  # noqa: F401  # pyright: ignore[reportUnusedImport]
from pulse.program.kernels.dispatch import FLOAT32, FLOAT64, MOVE, dispatcher, outlined
from pulse.program.kernels.microops import MICRO_OPS, OPCODES
from pulse.program.kernels.pointer import Bases, Pointer, Row, f32, f64, i32, i64, number, real, u8
from pulse.program.kernels.registry import device, kernel
from pulse.program.kernels.simd import LANES, vload, vload_part, vsplat, vstore, vstore_part
from pulse.program.kernels.stack import stack_f32, stack_f64, stack_i64, stack_pointers

__all__ = ["OPCODES", "chain", "chain64"]

F32, F64, I64, I32, U8, I8, BOOL = range(7)
INPUTS, REGISTERS = 8, 16
OPERANDS, OPERAND_WORDS, OP_WORDS = (
    6,
    6,
    7,
)  # where operands begin in a row, words of one, words of a micro-op
BLOCK = 256  # elements of a register
SLOT = BLOCK + LANES  # rows are stored by whole vectors: up to 15 lanes too many
BLOCK64 = 64
SLOTS, SLOTS64, TWICE_INPUTS = (INPUTS + REGISTERS) * SLOT, REGISTERS * BLOCK64, 2 * INPUTS

apply_lanes = dispatcher(
    "apply_lanes",
    [(vector, True) if vector else (scalar, False) for vector, scalar in MICRO_OPS.values()],
    FLOAT32,
)
apply_float64 = dispatcher("apply_float64", [(scalar, False) for _, scalar in MICRO_OPS.values()], FLOAT64)


@device
def load_row(row: Row, bases: Bases, word: int, start: int, step: int, count: int, d: Pointer) -> None:
    """``d[i] = operand[start + i*step]``, i < count; may write up to 15 elements more."""
    if number(row, word + 1) == BOOL:
        q = u8(row, bases, word) + start
        for i in range(count):
            d[i] = 1.0 if q[i * step] != 0 else 0.0
        return
    p = f32(row, bases, word) + start
    i = 0
    if step == 1:
        while i + LANES <= count:
            vstore(d, i, vload(p, i))
            i += LANES
        if i < count:
            vstore(d, i, vload_part(p, i, count - i))
    elif step == 0:
        v = vsplat(p[0])
        while i < count:
            vstore(d, i, v)
            i += LANES
    else:
        for j in range(count):
            d[j] = p[j * step]


@device
def store_row(row: Row, bases: Bases, word: int, start: int, step: int, count: int, r: Pointer) -> None:
    """``operand[start + i*step] = r[i]``, i < count; may read up to 15 elements of r more."""
    if number(row, word + 1) == BOOL:
        q = u8(row, bases, word) + start
        for i in range(count):
            q[i * step] = 1 if r[i] != 0 else 0
        return
    p = f32(row, bases, word) + start
    i = 0
    if step == 1:
        while i + LANES <= count:
            vstore(p, i, vload(r, i))
            i += LANES
        if i < count:
            vstore_part(p, i, count - i, vload(r, i))
    else:
        for j in range(count):
            p[j * step] = r[j]


@outlined(*MOVE)
def load_block(row: Row, bases: Bases, word: int, start: int, rows: int, columns: int, d: Pointer) -> None:
    """Rows of an operand, one after another, to a register."""
    step2, step3 = number(row, word + 4), number(row, word + 5)
    if step2 == step3 * columns:  # the rows are one row, or all elements are the same
        load_row(row, bases, word, start, step3, rows * columns, d)
    else:
        for r in range(rows):
            load_row(row, bases, word, start + r * step2, step3, columns, d + r * columns)


@outlined(*MOVE)
def store_block(row: Row, bases: Bases, word: int, start: int, rows: int, columns: int, r: Pointer) -> None:
    """A register to rows of an operand."""
    step2, step3 = number(row, word + 4), number(row, word + 5)
    for i in range(rows):
        store_row(row, bases, word, start + i * step2, step3, columns, r + i * columns)


@device
def offset(row: Row, word: int, i0: int, i1: int, i2: int, i3: int) -> int:
    """The element of an operand at a place of the four loops."""
    outer = i0 * number(row, word + 2) + i1 * number(row, word + 3)
    return outer + i2 * number(row, word + 4) + i3 * number(row, word + 5)


@device
def in_order(row: Row, word: int, rows: int, columns: int) -> bool:
    """Whether ``rows`` times ``columns`` elements of an operand are one f32 run in memory."""
    one_run = number(row, word + 5) == 1 and (rows == 1 or number(row, word + 4) == columns)
    return one_run and number(row, word + 1) == F32


@kernel
def chain(row: Row, bases: Bases) -> None:
    """A chain on f32 and bool (dtype codes 0 and 6), in f32, 16 lanes at a time.

    A block is up to 256 elements: several short rows of s3, or a part of a long one. Inputs and outputs that
    are one run of whole vectors in memory are used where they are, others pass through the stack.
    A row costs 25-40 ns, a micro-op 5 ns, a vector of 16 1 ns (add) to 9 ns (gelu).
    """
    slots, registers, loaded = stack_f32(SLOTS), stack_pointers(REGISTERS), stack_i64(TWICE_INPUTS)
    s0, s1, s2, s3 = number(row, 0), number(row, 1), number(row, 2), number(row, 3)
    inputs, ops = number(row, 4), number(row, 5)
    output = OPERANDS + OPERAND_WORDS * inputs
    fresh = True
    tall = BLOCK // s3 if s2 > 1 and 0 < s3 < BLOCK else 1
    for i0 in range(s0):
        for i1 in range(s1):
            for i2 in range(0, s2, tall):
                for i3 in range(0, s3, BLOCK):
                    rows, columns = min(tall, s2 - i2), min(BLOCK, s3 - i3)
                    count = rows * columns
                    whole = count & (LANES - 1) == 0
                    for k in range(inputs):
                        word = OPERANDS + OPERAND_WORDS * k
                        start = offset(row, word, i0, i1, i2, i3)
                        if fresh:
                            loaded[k] = -1
                        if whole and in_order(row, word, rows, columns):
                            registers[k] = f32(row, bases, word) + start
                            continue
                        slot = slots + k * SLOT
                        registers[k] = slot
                        if loaded[k] != start or loaded[INPUTS + k] < count:
                            loaded[k], loaded[INPUTS + k] = start, count
                            load_block(row, bases, word, start, rows, columns, slot)
                    fresh = False
                    start = offset(row, output, i0, i1, i2, i3)
                    direct = ops > 0 and whole and in_order(row, output, rows, columns)
                    result = registers[0]
                    for j in range(ops):
                        op = output + OPERAND_WORDS + OP_WORDS * j
                        target = number(row, op + 1)
                        result = slots + (INPUTS + target) * SLOT
                        if direct and j == ops - 1:
                            result = f32(row, bases, output) + start
                        a, b, c = number(row, op + 2), number(row, op + 3), number(row, op + 4)
                        p, q = real(row, op + 5), real(row, op + 6)
                        apply_lanes(
                            number(row, op), result, registers[a], registers[b], registers[c], count, p, q
                        )
                        registers[target] = result
                    if not direct:
                        store_block(row, bases, output, start, rows, columns, result)


@device
def load64(row: Row, bases: Bases, word: int, start: int, step: int, count: int, d: Pointer) -> None:
    """``d[i] = operand[start + i*step]`` of any dtype, i < count."""
    dtype = number(row, word + 1)
    if dtype == F32:
        p32 = f32(row, bases, word) + start
        for i in range(count):
            d[i] = p32[i * step]
    elif dtype == F64:
        p64 = f64(row, bases, word) + start
        for i in range(count):
            d[i] = p64[i * step]
    elif dtype == I64:
        q64 = i64(row, bases, word) + start
        for i in range(count):
            d[i] = q64[i * step]
    elif dtype == I32:
        q32 = i32(row, bases, word) + start
        for i in range(count):
            d[i] = q32[i * step]
    else:
        q8 = u8(row, bases, word) + start
        for i in range(count):
            value = int(q8[i * step])
            if dtype == I8 and value > 127:
                value -= 256
            if dtype == BOOL and value != 0:
                value = 1
            d[i] = value


@device
def store64(row: Row, bases: Bases, word: int, start: int, step: int, count: int, r: Pointer) -> None:
    """``operand[start + i*step] = r[i]`` of any dtype; to integers towards zero, to bool ``!= 0``."""
    dtype = number(row, word + 1)
    if dtype == F32:
        p32 = f32(row, bases, word) + start
        for i in range(count):
            p32[i * step] = r[i]
    elif dtype == F64:
        p64 = f64(row, bases, word) + start
        for i in range(count):
            p64[i * step] = r[i]
    elif dtype == I64:
        q64 = i64(row, bases, word) + start
        for i in range(count):
            q64[i * step] = whole_number(r[i])
    elif dtype == I32:
        q32 = i32(row, bases, word) + start
        for i in range(count):
            q32[i * step] = wrapped(whole_number(r[i]), 32)
    else:
        q8 = u8(row, bases, word) + start
        for i in range(count):
            if dtype == BOOL:
                q8[i * step] = 1 if r[i] != 0 else 0
            else:
                q8[i * step] = whole_number(r[i]) & 255


@device
def wrapped(value: int, bits: int) -> int:
    """The signed number in the low bits."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


@device
def whole_number(value: float) -> int:
    """Towards zero; the least int64 for NaN and what does not fit, as numpy has it here."""
    if -9223372036854775808.0 <= value < 9223372036854775808.0:
        return int(value)
    return -9223372036854775808


@kernel
def chain64(row: Row, bases: Bases) -> None:
    """A chain on any mix of dtypes, in float64: exact for integers up to 2**53."""
    slots = stack_f64(SLOTS64)
    s0, s1, s2, s3 = number(row, 0), number(row, 1), number(row, 2), number(row, 3)
    inputs, ops = number(row, 4), number(row, 5)
    output = OPERANDS + OPERAND_WORDS * inputs
    program = output + OPERAND_WORDS
    for outer in range(s0 * s1 * s2):
        i0, i1, i2 = outer // (s1 * s2), outer // s2 % s1, outer % s2
        for i3 in range(0, s3, BLOCK64):
            count = min(BLOCK64, s3 - i3)
            for k in range(inputs):
                word = OPERANDS + OPERAND_WORDS * k
                step = number(row, word + 5)
                start = offset(row, word, i0, i1, i2, i3)
                load64(row, bases, word, start, step, count, slots + k * BLOCK64)
            result = slots
            for j in range(ops):
                op = program + OP_WORDS * j
                result = slots + number(row, op + 1) * BLOCK64
                a, b = slots + number(row, op + 2) * BLOCK64, slots + number(row, op + 3) * BLOCK64
                c = slots + number(row, op + 4) * BLOCK64
                apply_float64(number(row, op), result, a, b, c, count, real(row, op + 5), real(row, op + 6))
            step = number(row, output + 5)
            start = offset(row, output, i0, i1, i2, i3)
            store64(row, bases, output, start, step, count, result)
