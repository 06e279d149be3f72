"""The instruction table: int64 rows of several lengths, one after another.

A table is built with kernel numbers in place of addresses, so that the plain-Python machine can read it;
``link`` compiles the kernels and puts their addresses in.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.registry import Kernel, compile_kernels, kernel_of
from pulse.jit.rows.pointer import HEADER_WORDS

RowTable = NDArray[np.int64]


class RowHead(Struct):
    """The head of a row in a linked table: the address of its kernel, and its length in int64."""

    kernel: int
    length: int


class Segment(Struct):
    """Rows of a table for several streams.

    rows           the number of rows
    lanes_at_once  1: one row, of a kernel for several streams; 0: its rows run for one stream after another
    """

    rows: int
    lanes_at_once: int


row_at, segments_at = struct_at(RowHead), struct_at(Segment)


class TableBuilder:
    """Collects rows; ``finish`` returns the unlinked table."""

    def __init__(self) -> None:
        self._words: list[int] = []
        self._rows = 0

    def add(self, kernel: Kernel, *args: int) -> int:
        """Append a row; return its index. Floats are packed with ``real_bits``, operands with ``operand``."""
        self._words += [kernel.number, HEADER_WORDS + len(args), *args]
        self._rows += 1
        return self._rows - 1

    def finish(self) -> RowTable:
        """Return the unlinked table: int64, row after row."""
        return np.array(self._words, np.int64)


def row_starts(table: RowTable) -> Iterator[int]:
    """Yield the index of each row's first int64."""
    start = 0
    while start < len(table):
        yield start
        start += int(table[start + 1])


def kernels_of(table: RowTable) -> Sequence[Kernel]:
    """Return the kernel of each row of an unlinked table."""
    return [kernel_of(int(table[start])) for start in row_starts(table)]


def link(table: RowTable) -> RowTable:
    """Return a copy with addresses in place of kernel numbers, for the compiled machine of this process."""
    kernels = kernels_of(table)
    compile_kernels(kernel.name for kernel in kernels)
    linked = table.copy()
    for start, kernel in zip(row_starts(table), kernels):
        linked[start] = kernel.address
    return linked


def link_lanes(table: RowTable) -> tuple[RowTable, Segment, int]:
    """Return the linked table for several streams, its segments and their number; see ``machine.lanes_runner``."""
    kernels = kernels_of(table)
    compile_kernels(kernel.name for single in kernels for kernel in (single, single.lanes) if kernel)
    linked = table.copy()
    for start, kernel in zip(row_starts(table), kernels):
        linked[start] = (kernel.lanes or kernel).address
    runs: list[tuple[int, bool]] = []
    for lanes_at_once, group in groupby(kernel.lanes is not None for kernel in kernels):
        rows = sum(1 for _ in group)
        runs += [(1, True)] * rows if lanes_at_once else [(rows, False)]
    segments = Segment.new(len(runs))
    for index, (rows, lanes_at_once) in enumerate(runs):
        segment = segments[index]
        segment.rows, segment.lanes_at_once = rows, int(lanes_at_once)
    return linked, segments, len(runs)
