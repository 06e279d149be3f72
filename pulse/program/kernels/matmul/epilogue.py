"""Functions fused after a product in the same instruction, over rows that are still in the cache.

Rows that are contiguous are one long row, in blocks that take one pass for each step; others take one for each step.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from pulse.jit.language.dispatch import outline
from pulse.jit.language.simd import (
    LANES,
    Vector,
    vload,
    vload_part,
    vlt,
    vmax,
    vmin,
    vround,
    vselect,
    vstore,
    vstore_part,
    vzero,
)
from pulse.jit.registry import device
from pulse.jit.rows.instruction import Operand, OptionalOperand, RowFields, reads, repeated_group, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import NOTHING, Reach, require, run, table
from pulse.program.kernels.matmul.product_blocks import store_columns
from pulse.program.kernels.vmath import vexpm1_negative, vsigmoid, vtanh

StepFunction: TypeAlias = Callable[[Vector, float], Vector]
MIN_RUN, RUN_BLOCK = 4 * LANES, 1024
"""The elements from which a run has one loop for each step, and those that stay in the cache from step to step."""
STEPS = (
    "relu",
    "tanh",
    "sigmoid",
    "leaky_relu",
    "elu",
    "swish",
    "prelu",
    "add",
    "mul_round",
    "max",
    "min",
    "round_within",
)
"""The steps, by their number; ``EpilogueStep`` explains them."""
RELU, TANH, SIGMOID, LEAKY_RELU, ELU, SWISH, PRELU, ADD, MUL_ROUND, MAX, MIN, ROUND_WITHIN = range(len(STEPS))
BY_COLUMN_CODES = (PRELU, MUL_ROUND)
BY_COLUMN = tuple(STEPS[code] for code in BY_COLUMN_CODES)
"""The steps whose operand has one number for each column."""
GATES = (None, "tanh", "sigmoid")
"""The functions of the halves of a gate, by their number."""


class EpilogueStep(RowFields):
    """A function applied to the values v of a row.

    ``relu tanh sigmoid``     of v
    ``leaky_relu elu swish``  of v, with the parameter
    ``prelu``                 with one slope for each column, the operand
    ``mul_round``             v times the operand, which has one number for each column, rounded to a whole number
    ``max min``               of v and the parameter
    ``round_within``          v rounded to a whole number, between the parameter and the limit
    ``add``                   v + operand[rows[m] + n]
    """

    code: int
    parameter: float
    limit: float
    operand: OptionalOperand = reads("f32")
    rows: OptionalOperand = reads("i64")


class GateEpilogue(RowFields):
    """``gated[rows[m] + n] = left(v[n]) * right(v[n + N/2])``; the functions are 0 (none), 1 (tanh) or 2 (sigmoid)."""

    left: int
    right: int
    gated: Operand = writes("f32")
    rows: Operand = reads("i64")


class Epilogue(RowFields):
    """The steps after a product, in order, or one gate.

    ``flat``: all rows are contiguous, in the operands too, so that they form one long row; no step is by column.
    """

    flat: bool
    gate_count: int
    step_count: int
    gates: Sequence[GateEpilogue] = repeated_group("gate_count")
    steps: Sequence[EpilogueStep] = repeated_group("step_count")

    def row_moves(self) -> dict[str, int]:
        """Return ``Cut.moves`` for a product's rows."""
        gates = {f"epilogue.gates[{i}].rows": 1 for i in range(self.gate_count)}
        return gates | {
            f"epilogue.steps[{i}].rows": 1 for i, step in enumerate(self.steps) if step.code == ADD
        }

    def column_moves(self) -> dict[str, int] | None:
        """Return ``Cut.moves`` for a product's columns; None if they cannot be cut."""
        if self.gate_count > 0:
            return None
        with_columns = (*BY_COLUMN_CODES, ADD)
        return {
            f"epilogue.steps[{i}].operand": 1
            for i, step in enumerate(self.steps)
            if step.code in with_columns
        }

    def reaches_on(self, y: Pointer, rows_y: Pointer, M: int, N: int) -> Iterator[Reach]:
        """Yield the ``reaches`` of the steps after M rows of N columns of y."""
        for gate in self.gates:
            yield y, table(rows_y, M) + run(N)
            yield gate.gated, table(gate.rows, M) + run(N // 2)
            yield gate.rows, run(M)
        rows, columns = (min(M, 1), M * N) if self.flat else (M, N)
        for step in self.steps:
            yield y, table(rows_y, rows) + run(columns)
            reads_rows, reads_columns = step.code == ADD, step.code in BY_COLUMN_CODES
            require(not (self.flat and reads_columns), "a step by column on one long row")
            if reads_rows:
                yield step.operand, table(step.rows, rows) + run(columns)
                yield step.operand, table(step.rows, M) + run(N)  # the reach of parts of the rows and columns
            yield step.operand, run(columns) if reads_columns else NOTHING
            yield step.rows, run(M) if reads_rows else NOTHING


NO_EPILOGUE = Epilogue(flat=False, gate_count=0, step_count=0, gates=(), steps=())


@device
def scale_negative(v: Vector, factor: Vector | float) -> Vector:
    """Multiply negative values by a factor."""
    return vselect(vlt(v, 0.0), v * factor, v)


@device
def elu(v: Vector, p: float) -> Vector:
    """Return the ELU with the parameter p."""
    return vselect(vlt(v, 0.0), vexpm1_negative(v) * p, v)


@device
def round_within(v: Vector, low: float, high: float) -> Vector:
    """Return the nearest whole number, halves to even, between two numbers."""
    return vmin(vmax(vround(v), low), high)


@device
def apply_to_two(u: Vector, v: Vector, code: int, p: float, limit: float) -> tuple[Vector, Vector]:
    """Apply a step without an operand to two vectors; the two chains of arithmetic are independent."""
    if code == RELU:
        return vmax(u, 0.0), vmax(v, 0.0)
    if code == TANH:
        return vtanh(u), vtanh(v)
    if code == LEAKY_RELU:
        return scale_negative(u, p), scale_negative(v, p)
    if code == ELU:
        return elu(u, p), elu(v, p)
    if code == MAX:
        return vmax(u, p), vmax(v, p)
    if code == MIN:
        return vmin(u, p), vmin(v, p)
    if code == ROUND_WITHIN:
        return round_within(u, p, limit), round_within(v, p, limit)
    if code == SIGMOID:
        return vsigmoid(u), vsigmoid(v)
    return u * vsigmoid(u * p), v * vsigmoid(v * p)


@device
def apply_to_rows(step: EpilogueStep, y: Pointer, rows_y: Pointer, rows: int, n: int, columns: int) -> None:
    """Apply a step to at most 16 columns, from n, of all rows, two at a time."""
    code, p, limit, operand, offsets = step.code, step.parameter, step.limit, step.operand, step.rows
    by_column = code in BY_COLUMN_CODES
    w = vload_part(operand, n, columns) if by_column else vzero()
    for m in range(0, rows, 2):
        other = min(m + 1, rows - 1)  # the last row twice, with the same result
        near, far = y + (rows_y[m] + n), y + (rows_y[other] + n)
        u, v = vload_part(near, 0, columns), vload_part(far, 0, columns)
        if code == PRELU:
            u, v = scale_negative(u, w), scale_negative(v, w)
        elif code == MUL_ROUND:
            u, v = vround(u * w), vround(v * w)
        elif code == ADD:
            u = u + vload_part(operand, offsets[m] + n, columns)
            v = v + vload_part(operand, offsets[other] + n, columns)
        else:
            u, v = apply_to_two(u, v, code, p, limit)
        store_columns(near, columns, u)
        store_columns(far, columns, v)


@device
def relu(v: Vector, _p: float) -> Vector:
    return vmax(v, 0.0)


@device
def tanh(v: Vector, _p: float) -> Vector:
    return vtanh(v)


@device
def sigmoid(v: Vector, _p: float) -> Vector:
    return vsigmoid(v)


@device
def swish(v: Vector, p: float) -> Vector:
    return v * vsigmoid(v * p)


@device
def map_run(function: StepFunction, target: Pointer, source: Pointer, count: int, p: float) -> None:
    """Apply a function to ``count`` elements, in whole vectors."""
    for n in range(0, count, LANES):
        vstore(target, n, function(vload(source, n), p))


@outline
def apply_to_run(row: Epilogue, i: int, first: int, target: Pointer, source: Pointer, count: int) -> None:
    """Apply step i to ``count`` elements of one long row, from its element ``first``, in whole vectors.

    ``target`` and ``source`` are the same, which the compiler does not know: it would store some lanes of each vector.
    """
    step = row.steps[i]
    code, p = step.code, step.parameter
    if code == ADD:
        w = step.operand + (step.rows[0] + first)
        for n in range(0, count, LANES):
            vstore(target, n, vload(source, n) + vload(w, n))
    elif code == RELU:
        map_run(relu, target, source, count, p)
    elif code == TANH:
        map_run(tanh, target, source, count, p)
    elif code == LEAKY_RELU:
        map_run(scale_negative, target, source, count, p)
    elif code == ELU:
        map_run(elu, target, source, count, p)
    elif code == MAX:
        map_run(vmax, target, source, count, p)
    elif code == MIN:
        map_run(vmin, target, source, count, p)
    elif code == ROUND_WITHIN:
        for n in range(0, count, LANES):
            vstore(target, n, round_within(vload(source, n), p, step.limit))
    elif code == SIGMOID:
        map_run(sigmoid, target, source, count, p)
    else:
        map_run(swish, target, source, count, p)


@device
def apply_to_runs(row: Epilogue, y: Pointer, rows_y: Pointer, columns: int) -> None:
    """Apply all steps to one long row, a block at a time; no step has an operand by column."""
    p, n = y + rows_y[0], 0
    whole = columns // LANES * LANES if columns >= MIN_RUN else 0
    while n < whole:
        count = min(RUN_BLOCK, whole - n)
        for i in range(row.step_count):
            apply_to_run(row, i, n, p + n, p + n, count)
        n += count
    while n < columns:
        rest = columns - n
        u = vload_part(p, n, rest)
        for i in range(row.step_count):
            step = row.steps[i]
            if step.code == ADD:
                u = u + vload_part(step.operand + step.rows[0], n, rest)
            else:
                u, _ = apply_to_two(u, u, step.code, step.parameter, step.limit)
        store_columns(p + n, rest, u)
        n += LANES


@device
def apply_gate_function(v: Vector, function: int) -> Vector:
    """Apply the function of one half of a gate."""
    if function == 1:
        return vtanh(v)
    if function == 2:
        return vsigmoid(v)
    return v


@device
def combine_gates(gate: GateEpilogue, y: Pointer, rows_y: Pointer, M: int, N: int) -> None:
    """Combine the two halves of each row to a row of half the width."""
    left, right, z, rows_z, half = gate.left, gate.right, gate.gated, gate.rows, N // 2
    for m in range(M):
        v, target = y + rows_y[m], z + rows_z[m]
        for n in range(0, half, LANES):
            low, high = vload_part(v, n, half - n), vload_part(v, half + n, half - n)
            vstore_part(
                target, n, half - n, apply_gate_function(low, left) * apply_gate_function(high, right)
            )


@outline
def apply_epilogue(row: Epilogue, y: Pointer, rows_y: Pointer, M: int, N: int) -> None:
    """Apply the steps or the gate to M rows of N columns."""
    if row.gate_count > 0:
        combine_gates(row.gates[0], y, rows_y, M, N)
    elif row.flat:
        apply_to_runs(row, y, rows_y, M * N)
    else:
        for i in range(row.step_count):
            for n in range(0, N, LANES):
                apply_to_rows(row.steps[i], y, rows_y, M, n, min(LANES, N - n))


@device
def epilogue(row: Epilogue, y: Pointer, rows_y: Pointer, M: int, N: int) -> None:
    """Apply the steps or the gate, if there are any, to M rows of N columns."""
    if M > 0 and row.gate_count + row.step_count > 0:
        apply_epilogue(row, y, rows_y, M, N)
