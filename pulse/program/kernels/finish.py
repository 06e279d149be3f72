"""What follows a product in the same instruction: a pass over its rows while they are in the cache.

The arguments: the number of steps; whether all rows lie one behind the other, in the operands too, so that they are one
long row (0, 1); then four for each step: its code, a parameter (a real), an operand (f32) and a table with the
operand's offset for each row. Steps run one after the other on the row's values v:

relu tanh sigmoid   of v
leaky_relu elu swish   of v, with the parameter
prelu               with one slope for each column, the operand
mul_round           the whole number next to v times the operand, which has one number for each column
max min             of v and the parameter
add                 v + operand[table[m] + n]
gated               the only step: operand[table[m] + n] = f(v[n]) * g(v[n + N/2]), parameter f + 4*g, each of them
                    0 (none), 1 (tanh) or 2 (sigmoid)
"""

from pulse.program.kernels.pointer import Bases, Pointer, Row, f32, i64, number, real
from pulse.program.kernels.registry import device
from pulse.program.kernels.simd import LANES, Lanes, vload_part, vlt, vmax, vmin, vround, vselect, vstore_part
from pulse.program.kernels.vmath import vexpm1, vsigmoid, vtanh

STEPS = (
    "relu",
    "tanh",
    "sigmoid",
    "leaky_relu",
    "elu",
    "swish",
    "prelu",
    "add",
    "gated",
    "mul_round",
    "max",
    "min",
)
RELU, TANH, SIGMOID, LEAKY, ELU, SWISH, PRELU, ADD, GATED, MUL_ROUND, MAX, MIN = range(12)
BY_COLUMN = ("prelu", "mul_round")
"""Steps whose operand has one number for each column."""
GATES = (None, "tanh", "sigmoid")
STEP_WORDS = 4


@device
def stepped(v: Lanes, row: Row, bases: Bases, at: int, m: int, n: int, rest: int) -> Lanes:
    """One step on the columns from n, of which ``rest`` exist, of row m."""
    code, p = number(row, at), real(row, at + 1)
    if code == RELU:
        return vmax(v, 0.0)
    if code == TANH:
        return vtanh(v)
    if code == LEAKY:
        return vselect(vlt(v, 0.0), v * p, v)
    if code == ELU:
        return vselect(vlt(v, 0.0), vexpm1(v) * p, v)
    if code == PRELU:
        return vselect(vlt(v, 0.0), v * vload_part(f32(row, bases, at + 2), n, rest), v)
    if code == MUL_ROUND:
        return vround(v * vload_part(f32(row, bases, at + 2), n, rest))
    if code == MAX:
        return vmax(v, p)
    if code == MIN:
        return vmin(v, p)
    if code == ADD:
        return v + vload_part(f32(row, bases, at + 2), i64(row, bases, at + 3)[m] + n, rest)
    squashed = vsigmoid(v if code == SIGMOID else v * p)
    return squashed if code == SIGMOID else v * squashed


@device
def gate(v: Lanes, function: int) -> Lanes:
    """A half of a gate."""
    if function == 1:
        return vtanh(v)
    if function == 2:
        return vsigmoid(v)
    return v


@device
def gated(row: Row, bases: Bases, at: int, y: Pointer, rows_y: Pointer, M: int, N: int) -> None:
    """The two halves of each row to one of half the width."""
    functions, z, rows_z = int(real(row, at + 1)), f32(row, bases, at + 2), i64(row, bases, at + 3)
    half = N // 2
    for m in range(M):
        v, target = y + rows_y[m], z + rows_z[m]
        for n in range(0, half, LANES):
            left, right = vload_part(v, n, half - n), vload_part(v, half + n, half - n)
            vstore_part(target, n, half - n, gate(left, functions & 3) * gate(right, functions >> 2))


@device
def finish(row: Row, bases: Bases, at: int, y: Pointer, rows_y: Pointer, M: int, N: int) -> None:
    """All steps; argument ``at`` is their number."""
    steps = number(row, at)
    if steps == 0:
        return
    if number(row, at + 2) == GATED:
        gated(row, bases, at + 2, y, rows_y, M, N)
        return
    rows, columns = (min(M, 1), M * N) if number(row, at + 1) else (M, N)
    for m in range(rows):
        p = y + rows_y[m]
        for n in range(0, columns, LANES):
            v = vload_part(p, n, columns - n)
            for step in range(steps):
                v = stepped(v, row, bases, at + 2 + STEP_WORDS * step, m, n, columns - n)
            vstore_part(p, n, columns - n, v)
