"""Calls for each element of tuples: as plain Python, and compiled."""

from operator import add, getitem, mul

import numpy as np
import pytest

from pulse.errors import CompileError
from pulse.jit.language.tuples import copies, each, indices
from pulse.jit.registry import device, named_kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.pointer import Pointer
from tests.pulse.program.kernels.rows import run_both, run_row

PLACES = (4, 0, 2)


class TupleRow(Instruction):
    """``y[2*i] = 10*x[PLACES[i]] + i`` and ``y[2*i + 1] = x[PLACES[i]] * sum(x[PLACES])``, i < 3."""

    x: Operand = reads("i64", 5)
    y: Operand = writes("i64", 6)


@device
def put(y: Pointer, i: int, first: int, second: int) -> None:
    """Set two elements."""
    y[2 * i] = first
    y[2 * i + 1] = second


@device
def times_sum(value: int, values: tuple[int, ...]) -> int:
    """Return a number times the sum of three numbers."""
    a, b, c = values
    return value * (a + b + c)


def compute_each(row: TupleRow) -> None:
    x, y = row.x, row.y
    values = each(getitem, x, PLACES)
    numbers = indices(values)
    totals = each(times_sum, values, copies(values, values))
    each(put, y, numbers, each(add, each(mul, values, 10), numbers), totals)


def add_unequal(row: TupleRow) -> None:
    a, b = each(add, each(getitem, row.x, PLACES), (1, 2))
    row.y[0] = a + b


each_kernel = named_kernel("infra_each")(compute_each)
unequal_kernel = named_kernel("infra_each_unequal")(add_unequal)


def test_a_function_is_called_for_each_element() -> None:
    row = TupleRow(x=np.array([3, -1, 7, 5, 2]), y=np.zeros(6, np.int64))
    for after in run_both(row, each_kernel):
        np.testing.assert_array_equal(after["y"], [20, 24, 31, 36, 72, 84])


def test_tuples_of_different_lengths_are_refused() -> None:
    row = TupleRow(x=np.zeros(5, np.int64), y=np.zeros(6, np.int64))
    with pytest.raises(ValueError, match="too many values"):
        run_row(row, unequal_kernel, python=True)
    with pytest.raises(CompileError, match="cannot compile"):
        unequal_kernel.prepare()
