"""Rows that kernels compute together: their addresses and their sums, as tuples."""

from typing import TypeAlias

from pulse.jit.language.simd import LANES, Vector, vdeinterleave_even, vload_part, vsplat
from pulse.jit.registry import device
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.pointer import Pointer

Indices: TypeAlias = tuple[int, ...]
"""Indices or offsets of rows, columns, gates or states."""
Pointers: TypeAlias = tuple[Pointer, ...]
Vectors: TypeAlias = tuple[Vector, ...]
Three: TypeAlias = tuple[Vector, Vector, Vector]
"""The sums of a row of 24 columns, 8 in a vector."""
ONE, TWO, THREE, FOUR, EIGHT = (0,), (0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3, 4, 5, 6, 7)
EVEN, ODD = (0, 2, 4, 6), (1, 3, 5, 7)
"""The numbers of 1 … 8 rows, and of each second one of eight."""


class RowsFields(Instruction):
    """M rows; row m of x begins at ``rows_x[m]``, and that of y at ``rows_y[m]``."""

    x: Operand = reads("f32")
    y: Operand = writes("f32")
    M: int
    rows_x: Operand = reads("i64", "M")
    rows_y: Operand = reads("i64", "M")


@device
def row_at(p: Pointer, rows: Pointer, i: int) -> Pointer:
    """Return the address of row i, of a table of offsets."""
    return p + rows[i]


@device
def element(p: Pointer, i: int) -> Vector:
    """Return an element in all lanes."""
    return vsplat(p[i])


@device
def load_even_part(p: Pointer, i: int, n: int) -> Vector:
    """Return the n elements ``p[2*i]``, ``p[2*i + 2]`` …, then zeros; touches no memory after the last, 0 < n <= 16."""
    first, rest = 2 * i, 2 * n - 1
    return vdeinterleave_even(vload_part(p, first, rest), vload_part(p, first + LANES, rest - LANES))


@device
def number_until(first: int, last: int, i: int) -> int:
    """Return the number of row ``first + i``; past the last one, of that."""
    return min(first + i, last)


@device
def first_four(last: int) -> Indices:
    """Return 0, 1, 2 and 3; past the last number, that one again."""
    return 0, min(1, last), min(2, last), min(3, last)


@device
def first_eight(last: int) -> Indices:
    """Return 0, 1 … 7; past the last number, that one again."""
    return 0, min(1, last), min(2, last), min(3, last), min(4, last), min(5, last), min(6, last), min(7, last)
