"""One row run as plain Python and compiled, on arrays that become operands."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.jit.registry import Kernel
from pulse.jit.rows.pointer import real_bits
from pulse.program.machine import machine
from pulse.program.table.table import TableBuilder, kernels_of, link

Array = NDArray[Any]
GUARD = 64


class Memory:
    """Arrays side by side in one region, with bytes between them that no kernel may touch."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays = arrays
        self.places: list[int] = []
        place = GUARD
        for array in arrays:
            self.places.append(place)
            place += -(-array.nbytes // 64) * 64 + GUARD
        self.bytes = np.full(place, 0xA5, np.uint8)
        for array, start in zip(arrays, self.places):
            self.bytes[start : start + array.nbytes] = array.reshape(-1).view(np.uint8)

    def read(self, n: int) -> Array:
        """The current value of array n."""
        array, start = self.arrays[n], self.places[n]
        return self.bytes[start : start + array.nbytes].view(array.dtype).reshape(array.shape).copy()

    def check_guards(self) -> None:
        """Nothing was written between the arrays."""
        free = np.ones(len(self.bytes), bool)
        for array, start in zip(self.arrays, self.places):
            free[start : start + array.nbytes] = False
        assert (self.bytes[free] == 0xA5).all()


class At:
    """Array number ``array`` from its element ``element`` on, as an argument."""

    def __init__(self, array: int, element: int = 0) -> None:
        self.array = array
        self.element = element


def run_row(kernel: Kernel, arrays: Sequence[Array], *args: "At | float | int", python: bool) -> list[Array]:
    """The arrays after one row; floats are packed, ``At`` become operands of region 1."""
    memory = Memory([np.ascontiguousarray(array) for array in arrays])
    build = TableBuilder()
    words: list[int] = []
    for arg in args:
        if isinstance(arg, At):
            array = memory.arrays[arg.array]
            words.append(build.operand(1, memory.places[arg.array] + arg.element * array.itemsize))
        else:
            words.append(real_bits(arg) if isinstance(arg, float) else int(arg))
    build.add(kernel, *words)
    table = build.finish()
    regions = [np.zeros(0, np.uint8), memory.bytes]
    if python:
        machine.run_python(table, regions)
    else:
        linked = link(table)
        bases = np.array([region.ctypes.data for region in regions], np.int64)
        machine.run(linked.ctypes.data, len(kernels_of(table)), bases.ctypes.data)
    memory.check_guards()
    return [memory.read(n) for n in range(len(arrays))]


def run_both(kernel: Kernel, arrays: Sequence[Array], *args: "At | float | int") -> list[list[Array]]:
    """``run_row`` as Python, then compiled."""
    return [run_row(kernel, arrays, *args, python=python) for python in (True, False)]
