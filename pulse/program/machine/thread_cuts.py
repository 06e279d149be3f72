"""Choose the rows of a table that run in parts on several threads, and link such a table."""

from itertools import chain

import numpy as np

from pulse.jit.registry import kernel_of
from pulse.jit.row_cuts import RowCut, best_cut, cut_rows
from pulse.jit.rows.instruction import Instruction
from pulse.program.machine.step_sharing import (
    MEASURED_WORDS,
    StepSharing,
    begin_step,
    end_step,
)
from pulse.program.machine.team import HEAD_WORDS, Team, run_parts
from pulse.program.table.memory import align
from pulse.program.table.table import RowTable, link, row_starts
from pulse.support.record import record

MIN_CUT_WORK = 180_000
"""The minimum work of a row that is cut, in units of ``Instruction.work``: about 5 us. A turn costs 1 us."""


@record
class ThreadCuts:
    """The division of a table's rows among several threads.

    threads        the number of threads
    rows           how each row is cut; None: it runs whole, on the stepping thread
    scratch_bytes  the scratch of the parts, at the end of the arena
    """

    threads: int
    rows: tuple[RowCut | None, ...]
    scratch_bytes: int

    @property
    def count(self) -> int:
        """The number of rows that are cut."""
        return sum(parts is not None for parts in self.rows)

    def counts(self) -> tuple[int, ...]:
        """Return the number of parts of each row."""
        return tuple(1 if parts is None else len(parts.bounds) - 1 for parts in self.rows)


def cut_for_threads(table: RowTable, threads: int) -> ThreadCuts:
    """Cut each long row of an unlinked table into a part for each thread; into fewer if it has fewer blocks."""
    words = table.tolist()
    cuts = tuple(
        _parts_of_row(words[start : start + words[start + 1]], threads) for start in row_starts(table)
    )
    scratch = max((parts.scratch_bytes for parts in cuts if parts is not None), default=0)
    return ThreadCuts(threads, cuts, (threads - 1) * scratch)


def _parts_of_row(row: list[int], threads: int) -> RowCut | None:
    kernel = kernel_of(row[0])
    if threads == 1 or kernel.instruction.cuts is Instruction.cuts:
        return None
    instruction = kernel.instruction.from_words(row, 0, (), kernel.form)
    if instruction.work() < MIN_CUT_WORK:
        return None
    counts = range(threads, 1, -1)
    return next((parts for count in counts if (parts := best_cut(kernel, row, count)) is not None), None)


@record
class SharedTable:
    """A linked table with rows in parts. All three live as long as streams that run it.

    table    the rows
    team     the threads that run them
    sharing  the times of steps, which decide whether the threads share them
    """

    table: RowTable
    team: Team
    sharing: StepSharing


def link_parts(
    table: RowTable, thread_cuts: ThreadCuts, team: Team, arena_bytes: int, alone_ticks: int
) -> SharedTable:
    """Link a table with rows in parts, whose scratch follows the first ``arena_bytes`` of the arena.

    alone_ticks  the duration of a step on one thread
    Raises       CompileError: a kernel cannot be compiled
    """
    linked, rows = link(table).tolist(), list[list[int]]()
    scratch_byte = align(arena_bytes)
    for start, parts in zip(row_starts(table), thread_cuts.rows):
        row = linked[start : start + linked[start + 1]]
        if parts is not None:
            cut = [row, *cut_rows(kernel_of(int(table[start])), row, parts, scratch_byte)]
            head = [run_parts.address, HEAD_WORDS + len(cut) * len(row), team.address, len(cut) - 1, len(row)]
            row = [*head, *chain.from_iterable(cut)]
        rows.append(row)
    sharing = StepSharing.new()
    sharing.alone = alone_ticks
    for index, measured in ((0, begin_step), (-1, end_step)):
        head = [measured.address, MEASURED_WORDS + len(rows[index]), team.address, sharing.address]
        rows[index] = [*head, *rows[index]]
    return SharedTable(np.array([*chain.from_iterable(rows)], np.int64), team, sharing)
