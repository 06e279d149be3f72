"""The instruction table: rows of int64 of several lengths, one after another.

A table is built with kernel numbers in place of addresses, so that the plain-Python machine can read it;
``link`` compiles the kernels and puts their addresses in.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pulse.jit.pointer import HEADER, operand
from pulse.jit.registry import Kernel, compile_kernels, kernel_of

Table = NDArray[np.int64]


class TableBuilder:
    """Collects rows; ``finish`` gives the unlinked table."""

    def __init__(self) -> None:
        self._words: list[int] = []
        self._rows = 0

    def add(self, kernel: Kernel, *args: int) -> int:
        """Append a row; gives its index. Floats are packed by ``real_bits``, operands by ``operand``."""
        self._words += [kernel.number, HEADER + len(args), *args]
        self._rows += 1
        return self._rows - 1

    def operand(self, region: int, byte_offset: int) -> int:
        """The argument for bytes from ``byte_offset`` of ``region``."""
        return operand(region, byte_offset)

    def finish(self) -> Table:
        """The unlinked table: int64, row after row."""
        return np.array(self._words, np.int64)


def row_starts(table: Table) -> Iterator[int]:
    """The index of each row's first int64."""
    start = 0
    while start < len(table):
        yield start
        start += int(table[start + 1])


def row_count(table: Table) -> int:
    """How many rows the table has."""
    return sum(1 for _ in row_starts(table))


def kernels_of(table: Table) -> Sequence[Kernel]:
    """The kernel of each row of an unlinked table."""
    return [kernel_of(int(table[start])) for start in row_starts(table)]


def link(table: Table) -> Table:
    """A copy with addresses for kernel numbers, for the compiled machine in this process."""
    kernels = kernels_of(table)
    compile_kernels(kernel.name for kernel in kernels)
    linked = table.copy()
    for start, kernel in zip(row_starts(table), kernels):
        linked[start] = kernel.address
    return linked


def link_lanes(table: Table) -> tuple[Table, Table]:
    """The linked table for several streams at once, and its segments; see ``machine.lanes_runner``."""
    kernels = kernels_of(table)
    compile_kernels(kernel.name for single in kernels for kernel in (single, single.lanes) if kernel)
    linked = table.copy()
    segments: list[list[int]] = []
    for start, kernel in zip(row_starts(table), kernels):
        linked[start] = (kernel.lanes or kernel).address
        if kernel.lanes:
            segments.append([1, 1])
        elif segments and not segments[-1][1]:
            segments[-1][0] += 1
        else:
            segments.append([1, 0])
    return linked, np.array(segments, np.int64).ravel()
