"""Functions fused after a product in the same instruction, over rows that are still in the cache.

Rows that are contiguous are one long row, in blocks that take one pass for each step; others take one for each step.
"""

from collections.abc import Iterator, Sequence

from pulse.jit.language.dispatch import chooser, dispatcher, outline
from pulse.jit.language.simd import LANES, Vector, vload_part, vstore_part, vzero
from pulse.jit.registry import device
from pulse.jit.rows.instruction import Operand, OptionalOperand, RowFields, reads, repeated_group, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import NOTHING, Reach, require, run, table
from pulse.program.kernels.elementwise_microops import vector_form
from pulse.program.kernels.matmul.product_blocks import store_columns

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
    "maxc",
    "minc",
    "round_within",
)
"""The steps, by their number: functions of ``MICRO_OPS``, of which b is the operand."""
BY_COLUMN = ("prelu", "mul_round")
"""The steps whose operand has one number for each column."""
BY_COLUMN_CODES = PRELU, MUL_ROUND = STEPS.index("prelu"), STEPS.index("mul_round")
ADD = STEPS.index("add")
GATES = (None, "tanh", "sigmoid")
"""The functions of the halves of a gate, by their number."""


class EpilogueStep(RowFields):
    """A function applied to the values v of a row.

    ``relu tanh sigmoid``     of v
    ``leaky_relu elu swish``  of v, with the parameter
    ``prelu``                 with one slope for each column, the operand
    ``mul_round``             v times the operand, which has one number for each column, rounded to a whole number
    ``maxc minc``             of v and the parameter
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

    def reaches_on(self, y: Pointer, rows_y: Pointer, M: int, N: int, lanes: int = 1) -> Iterator[Reach]:
        """Yield the ``reaches`` of the steps after M rows of N columns of y, of ``lanes`` streams."""
        for gate in self.gates:
            yield y, (table(rows_y, M) + run(N)) * lanes
            yield gate.gated, (table(gate.rows, M) + run(N // 2)) * lanes
            yield gate.rows, run(M)
        rows, columns = (min(M, 1), M * N) if self.flat else (M, N)
        for step in self.steps:
            yield y, (table(rows_y, rows) + run(columns)) * lanes
            reads_rows, reads_columns = step.code == ADD, step.code in BY_COLUMN_CODES
            require(not (self.flat and reads_columns), "a step by column on one long row")
            if reads_rows:
                yield step.operand, (table(step.rows, rows) + run(columns)) * lanes
                # the reach of parts of the rows and columns
                yield step.operand, (table(step.rows, M) + run(N)) * lanes
            yield step.operand, run(columns) if reads_columns else NOTHING
            yield step.rows, run(M) if reads_rows else NOTHING


NO_EPILOGUE = Epilogue(flat=False, gate_count=0, step_count=0, gates=(), steps=())


apply_step = chooser("apply_step", [vector_form(name) for name in STEPS])
apply_to_run = dispatcher("apply_to_run", [(vector_form(name), True) for name in STEPS], "f32")
apply_gate_function = chooser("apply_gate_function", [vector_form(name) for name in GATES if name])


@device
def apply_gate(function: int, v: Vector) -> Vector:
    """Apply the function of one half of a gate."""
    return v if function == 0 else apply_gate_function(function - 1, v, v, 0.0, 0.0)


@device
def apply_to_rows(step: EpilogueStep, y: Pointer, rows_y: Pointer, rows: int, n: int, columns: int) -> None:
    """Apply a step to at most 16 columns, from n, of all rows, two at a time."""
    code, p, limit, operand, offsets = step.code, step.parameter, step.limit, step.operand, step.rows
    w = z = vload_part(operand, n, columns) if code in BY_COLUMN_CODES else vzero()
    for m in range(0, rows, 2):
        other = min(m + 1, rows - 1)  # the last row twice, with the same result
        y0, y1 = y + (rows_y[m] + n), y + (rows_y[other] + n)
        u, v = vload_part(y0, 0, columns), vload_part(y1, 0, columns)
        if code == ADD:
            w = vload_part(operand, offsets[m] + n, columns)
            z = vload_part(operand, offsets[other] + n, columns)
        u, v = apply_step(code, u, w, p, limit), apply_step(code, v, z, p, limit)
        store_columns(y0, columns, u)
        store_columns(y1, columns, v)


@device
def apply_to_runs(row: Epilogue, y: Pointer, rows_y: Pointer, columns: int) -> None:
    """Apply all steps to one long row, a block at a time; no step has an operand by column."""
    p, n = y + rows_y[0], 0
    whole = columns // LANES * LANES if columns >= MIN_RUN else 0
    while n < whole:
        q, count = p + n, min(RUN_BLOCK, whole - n)
        for i in range(row.step_count):
            step = row.steps[i]
            added = step.operand + (step.rows[0] + n) if step.code == ADD else q
            apply_to_run(step.code, q, q, added, q, count, step.parameter, step.limit)
        n += count
    while n < columns:
        rest = columns - n
        u = vload_part(p, n, rest)
        for i in range(row.step_count):
            step = row.steps[i]
            w = vload_part(step.operand + step.rows[0], n, rest) if step.code == ADD else vzero()
            u = apply_step(step.code, u, w, step.parameter, step.limit)
        store_columns(p + n, rest, u)
        n += LANES


@device
def combine_gates(gate: GateEpilogue, y: Pointer, rows_y: Pointer, M: int, N: int) -> None:
    """Combine the two halves of each row to a row of half the width."""
    left, right, z, rows_z, half = gate.left, gate.right, gate.gated, gate.rows, N // 2
    for m in range(M):
        v, target = y + rows_y[m], z + rows_z[m]
        for n in range(0, half, LANES):
            low, high = vload_part(v, n, half - n), vload_part(v, half + n, half - n)
            vstore_part(target, n, half - n, apply_gate(left, low) * apply_gate(right, high))


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
