"""Rows with machine code of their own: a kernel to which the words of the row are constants.

The code is tried beside the generic kernels. On the same memory it must leave the same bytes, and it must be faster.
Then its addresses are put into the table, word by word, while streams run: a row is called whole, by the one or the
other, and both do the same.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pulse.jit.pointer import HEADER
from pulse.jit.registry import Kernel
from pulse.jit.special import SpecialFunctions, special_functions
from pulse.program.native.executable import NativeExecutable
from pulse.program.native.special_trial import Trial
from pulse.program.table.table import Table, kernels_of, link, row_starts
from pulse.record import record

BATCH = 24
"""Rows that are compiled together."""
LEAST_GAIN = 1.1
"""Of a step; below, special rows are not worth their memory."""
LEAST_GAIN_OF_KERNEL = 1.02
LEAST_SHARE = 0.01
"""Of the time of a step that the rows of a kernel take."""


@record
class Specialisation:
    """What special rows have brought.

    reason    why streams do not run them; empty: they do
    kernels   whose rows they are
    rows      how many, and of ``total``
    before_s  a step of the machine with generic rows, and ``after_s`` with special ones; in turns, on this machine
    seconds   of processor time that compiling and trying took
    nbytes    of machine code
    """

    reason: str
    kernels: tuple[str, ...]
    rows: int
    total: int
    before_s: float
    after_s: float
    seconds: float
    nbytes: int

    @property
    def used(self) -> bool:
        """Whether streams run them."""
        return not self.reason

    @property
    def gain(self) -> float:
        """How many times as fast a step is."""
        return self.before_s / self.after_s

    def __str__(self) -> str:
        cost = f"{self.seconds:.1f} s, {self.nbytes / 1e6:.2f} MB"
        if not self.used:
            return f"not used: {self.reason} ({cost})"
        return f"{self.rows} of {self.total} rows, a step {self.gain:.2f} times as fast ({cost})"


Words = tuple[int, ...]
"""Of a row, without the kernel and the length."""


@record
class KernelRows:
    """The rows of a kernel.

    numbers  which they are
    starts   the words of a row -> where rows of these words begin in the table
    share    of the time of a step
    """

    kernel: Kernel
    numbers: list[int]
    starts: dict[Words, list[int]]
    share: float = 0.0

    def batches(self) -> Iterator[dict[Words, list[int]]]:
        """Those that are compiled together."""
        words = list(self.starts)
        for first in range(0, len(words), BATCH):
            yield {each: self.starts[each] for each in words[first : first + BATCH]}


def specialise(program: NativeExecutable, seconds: float, megabytes: float) -> Specialisation:
    """Compile special rows for the kernels that take most of a step, and let all streams of the program run them.

    seconds    of processor time after which no further rows are compiled
    megabytes  of machine code, likewise
    Raises     CompileError
    """
    begin_s = time.thread_time()
    trial, generic = Trial(program), link(program.unlinked)
    hot = _hot_rows(program, trial, generic)
    special, nbytes = generic.copy(), 0
    for kernel, batch in ((rows.kernel, batch) for rows in hot for batch in rows.batches()):
        if time.thread_time() - begin_s > seconds or nbytes > megabytes * 1e6:
            break
        functions = special_functions(kernel, list(batch), compiles=True)
        assert functions is not None
        nbytes += functions.nbytes
        _put(special, batch, functions)
    _take_back_slow_rows(trial, generic, special, hot)
    before_s, after_s = trial.step_seconds([generic, special])
    reason = ""
    if not trial.agree(generic, special):
        reason = "they do not give the same bits"
    elif before_s < LEAST_GAIN * after_s:
        reason = f"a step is {before_s / after_s:.2f} times as fast; less than {LEAST_GAIN} is not worth it"
    changed = np.flatnonzero(special != generic)
    used = tuple(
        rows.kernel.name
        for rows in hot
        if any(start in changed for at in rows.starts.values() for start in at)
    )
    if not reason:
        program.special_kernels = used
        for start in changed:
            program.table[start] = special[start]
    took_s = time.thread_time() - begin_s
    return Specialisation(reason, used, len(changed), program.rows, before_s, after_s, took_s, nbytes)


def put_kept_rows(program: NativeExecutable, table: Table) -> None:
    """Put the special rows of ``program.special_kernels`` that are on the disk into a linked table.

    Nothing is compiled: rows whose code is missing stay generic.
    """
    for rows in rows_by_kernel(program.unlinked):
        if rows.kernel.name in program.special_kernels:
            for batch in rows.batches():
                functions = special_functions(rows.kernel, list(batch), compiles=False)
                if functions is not None:
                    _put(table, batch, functions)


def rows_by_kernel(table: Table) -> list[KernelRows]:
    """The rows of an unlinked table."""
    groups: dict[Kernel, KernelRows] = {}
    for number, (start, kernel) in enumerate(zip(row_starts(table), kernels_of(table))):
        rows = groups.setdefault(kernel, KernelRows(kernel, [], {}))
        rows.numbers.append(number)
        words = tuple(table[start + HEADER : start + int(table[start + 1])].tolist())
        rows.starts.setdefault(words, []).append(start)
    return list(groups.values())


def _hot_rows(program: NativeExecutable, trial: Trial, generic: Table) -> list[KernelRows]:
    """Those that take ``LEAST_SHARE`` of a step or more, the longest first."""
    (ticks,) = trial.row_ticks([generic])
    timed = [
        replace(rows, share=float(ticks[rows.numbers].sum() / ticks.sum()))
        for rows in rows_by_kernel(program.unlinked)
    ]
    return sorted((rows for rows in timed if rows.share >= LEAST_SHARE), key=lambda rows: -rows.share)


def _take_back_slow_rows(trial: Trial, generic: Table, special: Table, hot: Sequence[KernelRows]) -> None:
    """Make rows generic again whose kernel gains nothing."""
    before, after = trial.row_ticks([generic, special])
    for rows in hot:
        if before[rows.numbers].sum() < LEAST_GAIN_OF_KERNEL * after[rows.numbers].sum():
            for starts in rows.starts.values():
                special[starts] = generic[starts]


def _put(table: Table, batch: Mapping[Words, list[int]], functions: SpecialFunctions) -> None:
    for address, starts in zip(functions.addresses, batch.values()):
        table[starts] = address
