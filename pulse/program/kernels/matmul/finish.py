"""Functions fused after a product in the same instruction: a pass over its rows while they are in the cache."""

from collections.abc import Iterator, Sequence

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
)
from pulse.jit.registry import device
from pulse.jit.rows.instruction import Operand, OptionalOperand, RowFields, reads, repeated_group, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import NOTHING, Reach, run, table
from pulse.program.kernels.vmath import vexpm1_negative, vsigmoid, vtanh

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
)
"""The steps, by their number; ``FinishStep`` explains them."""
RELU, TANH, SIGMOID, LEAKY_RELU, ELU, SWISH, PRELU, ADD, MUL_ROUND, MAX, MIN = range(len(STEPS))
BY_COLUMN = ("prelu", "mul_round")
"""The steps whose operand has one number for each column."""
GATES = (None, "tanh", "sigmoid")
"""The functions of the halves of a gate, by their number."""


class FinishStep(RowFields):
    """A function applied to the values v of a row.

    ``relu tanh sigmoid``     of v
    ``leaky_relu elu swish``  of v, with the parameter
    ``prelu``                 with one slope for each column, the operand
    ``mul_round``             v times the operand, which has one number for each column, rounded to a whole number
    ``max min``               of v and the parameter
    ``add``                   v + operand[rows[m] + n]
    """

    code: int
    parameter: float
    operand: OptionalOperand = reads("f32")
    rows: OptionalOperand = reads("i64")


class GateFinish(RowFields):
    """``gated[rows[m] + n] = left(v[n]) * right(v[n + N/2])``; the functions are 0 (none), 1 (tanh) or 2 (sigmoid)."""

    left: int
    right: int
    gated: Operand = writes("f32")
    rows: Operand = reads("i64")


class Finish(RowFields):
    """The steps after a product, in order, or one gate.

    ``flat``: all rows are contiguous, in the operands too, so that they form one long row.
    """

    flat: bool
    gate_count: int
    step_count: int
    gates: Sequence[GateFinish] = repeated_group("gate_count")
    steps: Sequence[FinishStep] = repeated_group("step_count")

    def row_moves(self) -> dict[str, int]:
        """Return ``Cut.moves`` for a product's rows."""
        gates = {f"finish.gates[{i}].rows": 1 for i in range(self.gate_count)}
        return gates | {f"finish.steps[{i}].rows": 1 for i, step in enumerate(self.steps) if step.code == ADD}

    def column_moves(self) -> dict[str, int] | None:
        """Return ``Cut.moves`` for a product's columns; None if they cannot be cut."""
        if self.gate_count > 0:
            return None
        by_column = (PRELU, MUL_ROUND, ADD)
        return {
            f"finish.steps[{i}].operand": 1 for i, step in enumerate(self.steps) if step.code in by_column
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
            reads_rows, reads_columns = step.code == ADD, step.code in (PRELU, MUL_ROUND)
            if reads_rows:
                yield step.operand, table(step.rows, rows) + run(columns)
                yield step.operand, table(step.rows, M) + run(N)  # the reach of parts of the rows and columns
            yield step.operand, run(columns) if reads_columns else NOTHING
            yield step.rows, run(M) if reads_rows else NOTHING


NO_FINISH = Finish(flat=False, gate_count=0, step_count=0, gates=(), steps=())


@device
def scale_negative(v: Vector, factor: Vector | float) -> Vector:
    """Multiply negative values by a factor."""
    return vselect(vlt(v, 0.0), v * factor, v)


@device
def elu(v: Vector, p: float) -> Vector:
    """Return the ELU with the parameter p."""
    return vselect(vlt(v, 0.0), vexpm1_negative(v) * p, v)


@device
def apply_to_two(u: Vector, v: Vector, code: int, p: float) -> tuple[Vector, Vector]:
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
    if code == SIGMOID:
        return vsigmoid(u), vsigmoid(v)
    return u * vsigmoid(u * p), v * vsigmoid(v * p)


@device
def apply_step(v: Vector, step: FinishStep, m: int, n: int, rest: int) -> Vector:
    """Apply one step to the columns from n, of which ``rest`` exist, of row m."""
    code = step.code
    if code == PRELU:
        return scale_negative(v, vload_part(step.operand, n, rest))
    if code == MUL_ROUND:
        return vround(v * vload_part(step.operand, n, rest))
    if code == ADD:
        return v + vload_part(step.operand, step.rows[m] + n, rest)
    v, _ = apply_to_two(v, v, code, step.parameter)
    return v


@device
def apply_step_to_two(u: Vector, v: Vector, step: FinishStep, m: int, n: int) -> tuple[Vector, Vector]:
    """Apply a step as ``apply_step``, to two whole vectors, the columns from n. The step is read once."""
    code = step.code
    if code == PRELU:
        w = step.operand + n
        return scale_negative(u, vload(w, 0)), scale_negative(v, vload(w, LANES))
    if code == MUL_ROUND:
        w = step.operand + n
        return vround(u * vload(w, 0)), vround(v * vload(w, LANES))
    if code == ADD:
        w = step.operand + step.rows[m] + n
        return u + vload(w, 0), v + vload(w, LANES)
    return apply_to_two(u, v, code, step.parameter)


@device
def apply_gate_function(v: Vector, function: int) -> Vector:
    """Apply the function of one half of a gate."""
    if function == 1:
        return vtanh(v)
    if function == 2:
        return vsigmoid(v)
    return v


@device
def combine_gates(gate: GateFinish, y: Pointer, rows_y: Pointer, M: int, N: int) -> None:
    """Combine the two halves of each row to a row of half the width."""
    left, right, z, rows_z, half = gate.left, gate.right, gate.gated, gate.rows, N // 2
    for m in range(M):
        v, target = y + rows_y[m], z + rows_z[m]
        for n in range(0, half, LANES):
            low, high = vload_part(v, n, half - n), vload_part(v, half + n, half - n)
            vstore_part(
                target, n, half - n, apply_gate_function(low, left) * apply_gate_function(high, right)
            )


@device
def finish(row: Finish, y: Pointer, rows_y: Pointer, M: int, N: int) -> None:
    """Apply the steps or the gate to M rows of N columns."""
    count, steps = row.step_count, row.steps
    if row.gate_count > 0:
        combine_gates(row.gates[0], y, rows_y, M, N)
        return
    if count == 0:
        return
    rows, columns = (min(M, 1), M * N) if row.flat else (M, N)
    for m in range(rows):
        p, n = y + rows_y[m], 0
        while n + 2 * LANES <= columns:
            u, v = vload(p, n), vload(p, n + LANES)
            for i in range(count):
                u, v = apply_step_to_two(u, v, steps[i], m, n)
            vstore(p, n, u)
            vstore(p, n + LANES, v)
            n += 2 * LANES
        while n < columns:
            v = vload_part(p, n, columns - n)
            for i in range(count):
                v = apply_step(v, steps[i], m, n, columns - n)
            vstore_part(p, n, columns - n, v)
            n += LANES
