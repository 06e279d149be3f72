"""Chains of elementwise functions in one pass over memory: an interpreter of micro-ops on register blocks."""

from collections.abc import Iterator, Sequence

from pulse.jit.language.dispatch import dispatcher, outline
from pulse.jit.language.raw import as_f32
from pulse.jit.language.simd import (
    LANES,
    vbroadcast_twos,
    vdeinterleave_even,
    vinterleave_first,
    vinterleave_second,
    vload,
    vload_eights,
    vload_part,
    vsplat,
    vstore,
    vstore_part,
)
from pulse.jit.language.stack import stack_f32, stack_i64, stack_pointers
from pulse.jit.registry import device, kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.instruction import Instruction, Operand, RowFields, reads, repeated_group, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, run
from pulse.program.kernels.dtypes import BOOL_CODE, F32_CODE
from pulse.program.kernels.elementwise_microops import MICRO_OPS, OPCODES
from pulse.program.kernels.row_tuples import load_even_part

CHAIN_LOOPS = 4
"""The loops of a chain."""
MAX_INPUTS = 8
"""Maximum number of operands of a chain; more are folded by several chains."""
MAX_REGISTERS = 16
"""Maximum number of registers of a chain, its inputs included."""
BLOCK_ELEMENTS = 320
"""The elements of a register, enough for a spectrum of 257 bins or 16 rows of 20."""
SLOT_ELEMENTS = BLOCK_ELEMENTS + LANES
"""The memory of a register, in elements: whole vectors are stored, which may write up to 15 elements too many."""
SLOTS, TWICE_INPUTS = (MAX_INPUTS + MAX_REGISTERS) * SLOT_ELEMENTS, 2 * MAX_INPUTS
"""The sizes of arrays on the stack: all registers, and two numbers for each input."""


class ChainInput(RowFields):
    """A tensor in a chain: its type, and its strides over the four loops, in elements."""

    tensor: Operand = reads(None)
    dtype: int
    step0: int
    step1: int
    step2: int
    step3: int


class ChainOutput(ChainInput):
    """The tensor that a chain writes: its type and strides."""

    tensor: Operand = writes(None)


class MicroOp(RowFields):
    """One function: its number in ``OPCODES``, the registers of the result and the operands, and its parameters."""

    code: int
    target: int
    a: int
    b: int
    c: int
    p: float
    q: float


class ChainRow(Instruction):
    """A chain on f32 and bool, in f32, over loops of sizes ``s``, the last one innermost.

    The inputs are in registers 0, 1 … (at most 8) of 16. The last target (register 0 without a micro-op) is stored. A
    bool is loaded as 1 if its byte is not 0.
    """

    s0: int
    s1: int
    s2: int
    s3: int
    input_count: int
    op_count: int
    inputs: Sequence[ChainInput] = repeated_group("input_count")
    output: ChainOutput
    ops: Sequence[MicroOp] = repeated_group("op_count")

    def work(self) -> int:
        return 8 * (1 + self.op_count) * self.s0 * self.s1 * self.s2 * self.s3

    def cuts(self) -> Iterator[Cut]:
        """Cut the outermost loop between blocks."""
        loop = next((loop for loop in range(3) if getattr(self, f"s{loop}") > 1), 3)
        yield Cut(
            f"s{loop}",
            self.block(loop),
            {
                f"{name}.tensor": getattr(part, f"step{loop}") * self.width(part)
                for name, part in (
                    *((f"inputs[{i}]", part) for i, part in enumerate(self.inputs)),
                    ("output", self.output),
                )
            },
        )

    def applied_rows(self) -> frozenset[int]:
        return frozenset(op.code for op in self.ops)

    def block(self, loop: int) -> int:
        """Return how many iterations of a loop are computed together."""
        return BLOCK_ELEMENTS if loop == 3 else max(BLOCK_ELEMENTS // max(self.s3, 1), 1) if loop == 2 else 1

    def width(self, part: ChainInput) -> int:
        """Return the bytes of an element."""
        return 1 if part.dtype == BOOL_CODE else 4

    def reaches(self) -> Iterator[Reach]:
        require(1 <= self.input_count <= MAX_INPUTS, f"{self.input_count} inputs")
        registers = set(range(self.input_count))
        for op in self.ops:
            require(0 <= op.code < len(OPCODES) and 0 <= op.target < MAX_REGISTERS, f"micro-op {op.code}")
            require({op.a, op.b, op.c} <= registers, "an empty register")
            registers.add(op.target)
        for part in (*self.inputs, self.output):
            loops = run(self.s0, part.step0) + run(self.s1, part.step1)
            yield (
                part.tensor,
                (loops + run(self.s2, part.step2) + run(self.s3, part.step3)) * self.width(part),
            )


apply_lanes = dispatcher(
    "apply_lanes",
    [(vector, True) if vector else (scalar, False) for vector, scalar in MICRO_OPS.values()],
    "f32",
)


@device
def load_row(part: ChainInput, start: int, step: int, count: int, d: Pointer) -> None:
    """Set ``d[i] = operand[start + i*step]``, i < count; may write up to 15 elements more."""
    if part.dtype == BOOL_CODE:
        q = part.tensor + start
        for i in range(count):
            d[i] = 1.0 if q[i * step] != 0 else 0.0
        return
    p = as_f32(part.tensor) + start
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
    elif step == 2:
        while i + LANES < count:
            vstore(d, i, vdeinterleave_even(vload(p, 2 * i), vload(p, 2 * i + LANES)))
            i += LANES
        vstore(d, i, load_even_part(p, i, count - i))
    else:
        for j in range(count):
            d[j] = p[j * step]


@device
def store_row(part: ChainOutput, start: int, step: int, count: int, r: Pointer) -> None:
    """Set ``operand[start + i*step] = r[i]``, i < count; may read up to 15 more elements of r."""
    if part.dtype == BOOL_CODE:
        q = part.tensor + start
        for i in range(count):
            q[i * step] = 1 if r[i] != 0 else 0
        return
    p = as_f32(part.tensor) + start
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


@outline
def load_block(part: ChainInput, start: int, rows: int, columns: int, d: Pointer) -> None:
    """Load rows of an operand, one after another, to a register."""
    step2, step3 = part.step2, part.step3
    if step2 == step3 * columns:  # the rows form one row, or all elements are the same
        load_row(part, start, step3, rows * columns, d)
    elif step3 == 1 and columns == LANES and part.dtype == F32_CODE:
        # an element of sixteen interleaved streams
        p = as_f32(part.tensor) + start
        for r in range(rows):
            vstore(d, r * LANES, vload(p, r * step2))
    elif step2 == 0 and step3 == 1 and (columns == 2 or columns == 8) and part.dtype == F32_CODE:
        # equal rows
        p = as_f32(part.tensor) + start
        repeated = vbroadcast_twos(p, 0) if columns == 2 else vload_eights(p, 0, 0, 2)
        for i in range(0, rows * columns, LANES):
            vstore(d, i, repeated)
    elif step3 == 1 and part.dtype == F32_CODE:
        p = as_f32(part.tensor) + start
        for r in range(rows):
            for i in range(0, columns, LANES):
                vstore(d, r * columns + i, vload_part(p, r * step2 + i, columns - i))
    elif step2 == 1 and step3 == 0 and columns == 2 and part.dtype == F32_CODE:
        p = as_f32(part.tensor) + start
        for r in range(0, rows, LANES):
            v = vload_part(p, r, rows - r)
            vstore(d, 2 * r, vinterleave_first(v, v))
            vstore(d, 2 * r + LANES, vinterleave_second(v, v))
    else:
        for r in range(rows):
            load_row(part, start + r * step2, step3, columns, d + r * columns)


@outline
def store_block(part: ChainOutput, start: int, rows: int, columns: int, r: Pointer) -> None:
    """Store a register to rows of an operand."""
    step2, step3 = part.step2, part.step3
    if rows == 1 or step2 == step3 * columns:  # the rows form one row
        store_row(part, start, step3, rows * columns, r)
        return
    if step3 == 1 and part.dtype == F32_CODE:
        p = as_f32(part.tensor) + start
        if columns == LANES:
            for i in range(rows):
                vstore(p, i * step2, vload(r, i * LANES))
            return
        for i in range(rows):
            for j in range(0, columns, LANES):
                vstore_part(p, i * step2 + j, columns - j, vload(r, i * columns + j))
        return
    for i in range(rows):
        store_row(part, start + i * step2, step3, columns, r + i * columns)


@device
def element_index(part: ChainInput, i0: int, i1: int, i2: int, i3: int) -> int:
    """Return the index of a tensor's element at a position of the four loops."""
    return i0 * part.step0 + i1 * part.step1 + i2 * part.step2 + i3 * part.step3


@device
def is_contiguous(part: ChainInput, rows: int, columns: int) -> bool:
    """Return whether ``rows`` times ``columns`` elements of a tensor are f32 and contiguous."""
    return part.step3 == 1 and (rows == 1 or part.step2 == columns) and part.dtype == F32_CODE


@kernel
def chain(row: ChainRow) -> None:
    """Compute 16 lanes at a time.

    A block is up to 320 elements: several short rows of s3, or a part of a long one. Contiguous inputs and outputs of
    whole vectors are used in place, others pass through the stack. If a single micro-op uses all tensors in place, a
    block is a whole row.
    A row costs 25-40 ns, a micro-op 5 ns, a vector of 16 1 ns (add) to 9 ns (gelu).
    """
    slots, registers, loaded = stack_f32(SLOTS), stack_pointers(MAX_REGISTERS), stack_i64(TWICE_INPUTS)
    s0, s1, s2, s3, input_count, op_count = row.s0, row.s1, row.s2, row.s3, row.input_count, row.op_count
    inputs, output, ops = row.inputs, row.output, row.ops
    fresh = True
    tall = BLOCK_ELEMENTS // s3 if s2 > 1 and 0 < s3 < BLOCK_ELEMENTS else 1
    wide = (
        max(BLOCK_ELEMENTS, s3)
        if op_count == 1 and s3 & (LANES - 1) == 0 and is_contiguous(output, 1, s3)
        else BLOCK_ELEMENTS
    )
    for k in range(input_count):
        wide = wide if is_contiguous(inputs[k], 1, s3) else BLOCK_ELEMENTS
    for i0 in range(s0):
        for i1 in range(s1):
            for i2 in range(0, s2, tall):
                i3 = 0
                while i3 < s3:
                    rows, columns = min(tall, s2 - i2), min(wide, s3 - i3)
                    count = rows * columns
                    whole = count & (LANES - 1) == 0
                    for k in range(input_count):
                        part = inputs[k]
                        start = element_index(part, i0, i1, i2, i3)
                        if fresh:
                            loaded[k] = -1
                        if whole and is_contiguous(part, rows, columns):
                            registers[k] = as_f32(part.tensor) + start
                            continue
                        slot = slots + k * SLOT_ELEMENTS
                        registers[k] = slot
                        if loaded[k] != start or loaded[MAX_INPUTS + k] < count:
                            loaded[k], loaded[MAX_INPUTS + k] = start, count
                            load_block(part, start, rows, columns, slot)
                    fresh = False
                    start = element_index(output, i0, i1, i2, i3)
                    direct = op_count > 0 and whole and is_contiguous(output, rows, columns)
                    result = registers[0]
                    for j in range(op_count):
                        op = ops[j]
                        target = op.target
                        result = slots + (MAX_INPUTS + target) * SLOT_ELEMENTS
                        if direct and j == op_count - 1:
                            result = as_f32(output.tensor) + start
                        a, b, c = registers[op.a], registers[op.b], registers[op.c]
                        apply_lanes(op.code, result, a, b, c, count, op.p, op.q)
                        registers[target] = result
                    if not direct:
                        store_block(output, start, rows, columns, result)
                    i3 += wide
