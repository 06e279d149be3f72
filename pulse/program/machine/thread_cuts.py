"""Choose the rows of a table that run in parts on several threads, and link such a table."""

import numpy as np

from pulse.jit.registry import kernel_of
from pulse.jit.row_cuts import RowCut, best_cut, cut_rows
from pulse.jit.rows.instruction import Instruction
from pulse.program.machine.team import HEAD_WORDS, Team, run_parts
from pulse.program.table.memory import align
from pulse.program.table.table import RowTable, link, row_starts
from pulse.support.record import record

MIN_CUT_WORK = 320_000
"""The minimum work of a row that is cut, in units of ``Instruction.work``: about 10 us. A turn costs 1 us."""


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


def link_parts(table: RowTable, thread_cuts: ThreadCuts, team: Team, arena_bytes: int) -> RowTable:
    """Link a table with rows in parts, whose scratch follows the first ``arena_bytes`` of the arena.

    Raises CompileError: a kernel cannot be compiled.
    """
    linked, linked_words = link(table).tolist(), list[int]()
    scratch_byte = align(arena_bytes)
    for start, parts in zip(row_starts(table), thread_cuts.rows):
        row = linked[start : start + linked[start + 1]]
        if parts is not None:
            kernel = kernel_of(int(table[start]))
            words = [word for part in cut_rows(kernel, row, parts, scratch_byte) for word in part]
            count = len(parts.bounds) - 1
            head = [run_parts.address, HEAD_WORDS + len(words), team.address, count, len(row)]
            row = [*head, *words]
        linked_words += row
    return np.array(linked_words, np.int64)
