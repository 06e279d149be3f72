"""The contents of a C library: a program with its ports, lengths, rows and kernels."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pulse.dim import TDim
from pulse.errors import WriteError
from pulse.facts import Array
from pulse.interface import AwaitedWire, Port
from pulse.jit.registry import Kernel
from pulse.program.native.kernel_program import KernelProgram
from pulse.program.program import Program
from pulse.program.specialise.kernel_rows import rows_by_kernel
from pulse.program.table.memory import align
from pulse.program.table.place import Place
from pulse.program.table.table import kernels_of, row_starts
from pulse.support.mapping import ALIGNMENT, align_up
from pulse.support.record import record
from pulse.support.wording import spell


@record
class InitialBytes:
    """Bytes of the initial state that are not all zero, and their offset."""

    offset: int
    data: Array


@record(eq=False)
class LibraryContents:
    """The contents of a library.

    name              the prefix of its functions
    title             the model's
    program           the rows, weights and memories
    rate_hz           frames of the symbol per second; None if it is not known
    external_weights  whether the weights are a file next to the library
    """

    name: str
    title: str
    program: KernelProgram
    rate_hz: Fraction | None
    external_weights: bool = False

    @property
    def ports(self) -> tuple[Port, ...]:
        """The inputs, then the outputs."""
        return (*self.program.inputs, *self.program.outputs)

    @property
    def places(self) -> list[Place]:
        """The places of the ports in memory, in the order of ``ports``."""
        return [place for _, place in (*self.program.input_places, *self.program.output_places)]

    @property
    def awaited_wires(self) -> Sequence[AwaitedWire]:
        """The wires that the end of the stream waits for."""
        return self.program.model.awaited_wires()

    @property
    def assumptions(self) -> list[TDim]:
        """The conditions on the length of a stream."""
        model = self.program.model
        return [assumption for assumption in model.assumptions if assumption.symbols <= {model.symbol}]

    @property
    def lengths(self) -> list[TDim]:
        """Lengths by their numbers: ports, awaited wires and ends, then the assumptions."""
        return [
            *(port.length for port in self.ports),
            *(wire.length for wire in self.awaited_wires),
            *(length for length, _ in self.program.length_registers),
            *self.assumptions,
        ]

    @property
    def weights_file(self) -> str:
        """The name of the file of external weights."""
        return f"{self.name}.weights"

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows without kernels, which the library calls by name."""
        rows = self.program.unlinked.copy()
        rows[list(row_starts(rows))] = 0
        return rows

    @property
    def calls(self) -> list[tuple[Kernel, int]]:
        """The kernel of each row, and the row's first word."""
        table = self.program.unlinked
        return list(zip(kernels_of(table), row_starts(table)))

    @property
    def kernels(self) -> list[Kernel]:
        """Each kernel once, in the order of the first row that needs it."""
        return list(dict.fromkeys(kernel for kernel, _ in self.calls))

    @property
    def applied_rows(self) -> dict[Kernel, frozenset[int]]:
        """Kernels with dispatchers -> the rows that the program applies; they are compiled with no others."""
        rows_of = {rows.kernel: rows.applied_rows for rows in rows_by_kernel(self.program.unlinked)}
        return {kernel: applied for kernel, applied in rows_of.items() if applied is not None}

    @property
    def pieces(self) -> list[InitialBytes]:
        """The first state without its zeros."""
        state = self.program.initial
        lines = np.zeros(align_up(state.size), np.uint8)
        lines[: state.size] = state
        nonzero_lines = np.flatnonzero(lines.reshape(-1, ALIGNMENT).any(1))
        runs = (
            np.split(nonzero_lines, np.flatnonzero(np.diff(nonzero_lines) > 1) + 1)
            if nonzero_lines.size
            else []
        )
        spans = [(int(run[0]) * ALIGNMENT, (int(run[-1]) + 1) * ALIGNMENT) for run in runs]
        return [InitialBytes(start, state[start:stop]) for start, stop in spans]

    @property
    def memory_bytes(self) -> int:
        """The memory of a stream in bytes: its record in the shell, state, arena."""
        return ALIGNMENT + align(self.program.state_bytes) + align(self.program.arena_bytes)

    def rate_of(self, port: Port) -> float:
        """Return frames of a port per second; 0 if it is not known."""
        return float(self.rate_hz * port.rate) if self.rate_hz is not None and port.streams else 0.0


def library_contents(
    program: Program, name: str, title: str, rate_hz: int | None, external_weights: bool = False
) -> LibraryContents:
    """Prepare a program for a library. Raises WriteError: parts of the program run in Python only."""
    if not isinstance(program, KernelProgram):
        raise WriteError(
            f"{title}: parts of this program run on the {program.backend} backend, which needs Python; only programs "
            "whose every node has a kernel become libraries: compile it with backend='numba'"
        )
    if program.fetched_places:
        raise WriteError(f"{title}: a program that fetches inner wires cannot become a library; omit fetches")
    if external_weights and not program.weights.size:
        raise WriteError(
            f"{title}: the model has no weights for a separate file; omit {spell('external_weights', True)}"
        )
    rate = None if rate_hz is None else Fraction(rate_hz)
    return LibraryContents(name, title, program, rate, external_weights)
