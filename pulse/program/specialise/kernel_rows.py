"""The rows of each kernel of a table, and their specialised code."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pulse.jit.registry import Kernel
from pulse.jit.rows.pointer import HEADER_WORDS
from pulse.jit.specialised_functions import SpecialisedFunctions, specialised_functions
from pulse.program.table.memory import Region
from pulse.program.table.table import RowTable, kernels_of, row_starts
from pulse.support.record import record

BATCH_ROWS = 24
"""The number of rows that are compiled together."""
RowWords = tuple[int, ...]
"""The words of a row, without its kernel and length."""


@record
class KernelRows:
    """The rows of a kernel.

    kernel   the kernel
    numbers  the numbers of the rows
    starts   the words of a row -> where rows with these words begin in the table
    share    their share of the time of a step
    """

    kernel: Kernel
    numbers: list[int]
    starts: dict[RowWords, list[int]]
    share: float = 0.0

    @property
    def applied_rows(self) -> frozenset[int] | None:
        """The rows of dispatchers that they apply; None: the kernel has no dispatcher."""
        regions = [np.zeros(0, np.uint8)] * len(Region)
        rows_of = [
            self.kernel.instruction.from_words(
                [0] * HEADER_WORDS + [*words], 0, regions, self.kernel.form
            ).applied_rows()
            for words in self.starts
        ]
        applied = [rows for rows in rows_of if rows is not None]
        return frozenset[int]().union(*applied) if applied else None

    def batches(self) -> Iterator[dict[RowWords, list[int]]]:
        """Yield the rows that are compiled together."""
        words = list(self.starts)
        for first in range(0, len(words), BATCH_ROWS):
            yield {row: self.starts[row] for row in words[first : first + BATCH_ROWS]}


def rows_by_kernel(table: RowTable) -> list[KernelRows]:
    """Group the rows of an unlinked table by kernel."""
    groups: dict[Kernel, KernelRows] = {}
    for row, (start, kernel) in enumerate(zip(row_starts(table), kernels_of(table))):
        rows = groups.setdefault(kernel, KernelRows(kernel, [], {}))
        rows.numbers.append(row)
        words = tuple(table[start + HEADER_WORDS : start + int(table[start + 1])].tolist())
        rows.starts.setdefault(words, []).append(start)
    return list(groups.values())


def put_kept_rows(unlinked: RowTable, kernels: Sequence[str], linked: RowTable) -> None:
    """Write the addresses of specialised kernels whose code is on the disk to a linked table.

    Nothing is compiled: rows whose code is missing stay generic.
    """
    for rows in rows_by_kernel(unlinked):
        if rows.kernel.name in kernels:
            for batch in rows.batches():
                functions = specialised_functions(rows.kernel, list(batch), compiles=False)
                if functions is not None:
                    write_addresses(linked, batch, functions)


def write_addresses(
    table: RowTable, batch: Mapping[RowWords, list[int]], functions: SpecialisedFunctions
) -> None:
    """Write the addresses of the functions of a batch to a linked table."""
    for address, starts in zip(functions.addresses, batch.values()):
        table[starts] = address
