"""A row run as plain Python and compiled; its operands are arrays."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.registry import KERNELS, Kernel
from pulse.jit.rows.instruction import Instruction
from pulse.jit.rows.pointer import operand
from pulse.program.machine import machine
from pulse.program.table.table import TableBuilder, kernels_of, link

Array = NDArray[Any]
GUARD = 64


class ArrayPart:
    """The elements of an array from ``start`` on, as an operand; other operands may be parts of the same array."""

    def __init__(self, array: Array, start: int) -> None:
        self.array = array
        self.start = start

    @property
    def dtype(self) -> "np.dtype[Any]":
        return self.array.dtype

    @property
    def size(self) -> int:
        return self.array.size - self.start


Operand = Array | ArrayPart


def _array_of(operand: Operand) -> Array:
    return operand.array if isinstance(operand, ArrayPart) else operand


class Memory:
    """Arrays side by side in one region, with bytes between them that no kernel may touch."""

    def __init__(self, arrays: Iterable[Array]) -> None:
        self.arrays = {id(array): array for array in arrays}
        self.starts: dict[int, int] = {}
        stop = GUARD
        for key, array in self.arrays.items():
            self.starts[key] = stop
            stop += -(-array.nbytes // 64) * 64 + GUARD
        self.bytes = np.full(stop, 0xA5, np.uint8)
        for key, array in self.arrays.items():
            start = self.starts[key]
            self.bytes[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def start_of(self, operand: Operand) -> int:
        """The first byte of an operand."""
        array = _array_of(operand)
        first = operand.start * array.itemsize if isinstance(operand, ArrayPart) else 0
        return self.starts[id(array)] + first

    def read(self, operand: Operand) -> Array:
        """The current value of the array of an operand."""
        array = _array_of(operand)
        start = self.starts[id(array)]
        return self.bytes[start : start + array.nbytes].view(array.dtype).reshape(array.shape).copy()

    def assert_guards_intact(self) -> None:
        """Check that nothing was written between the arrays."""
        free = np.ones(len(self.bytes), bool)
        for key, array in self.arrays.items():
            free[self.starts[key] : self.starts[key] + array.nbytes] = False
        assert (self.bytes[free] == 0xA5).all()


def run_row(row: Instruction, kernel: Kernel | None = None, *, python: bool) -> dict[str, Array]:
    """The arrays of the operands after one row, by the names of its fields.

    Fields that have the same array share its memory. The kernel is that of the instruction, unless another is given.
    """
    operands = {
        name: value for name, value in row.fields_by_name() if isinstance(value, np.ndarray | ArrayPart)
    }
    memory = Memory(map(_array_of, operands.values()))
    build = TableBuilder()
    words = [word if isinstance(word, int) else operand(1, memory.start_of(word)) for word in row.arguments()]
    build.add(kernel or KERNELS[row.kernel_name], *words)
    table = build.finish()
    regions = [np.zeros(0, np.uint8), memory.bytes]
    if python:
        machine.run_python(table, regions)
    else:
        linked = link(table)
        bases = np.array([region.ctypes.data for region in regions], np.int64)
        machine.run(linked.ctypes.data, len(kernels_of(table)), bases.ctypes.data)
    memory.assert_guards_intact()
    return {name: memory.read(operand) for name, operand in operands.items()}


def run_both(row: Instruction, kernel: Kernel | None = None) -> Sequence[dict[str, Array]]:
    """``run_row`` as Python, then compiled."""
    return [run_row(row, kernel, python=python) for python in (True, False)]
