"""The part of a native program that its streams read: an instruction table over weights, state and arena."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from pulse.dim import TDim
from pulse.facts import Array
from pulse.ops.check import Site
from pulse.program.machine import machine
from pulse.program.program import Program
from pulse.program.table.memory import align
from pulse.program.table.place import Place
from pulse.program.table.table import link
from pulse.support.mapping import aligned_bytes

if TYPE_CHECKING:
    from pulse.program.machine.thread_cuts import SharedTable, ThreadCuts
    from pulse.program.table.cost import RowNote
    from pulse.program.table.emitted import EmittedInstruction

MEASURED_STEPS = 8
"""The steps on one thread that are measured before a stream runs on several."""


class NativeExecutable(Program):
    """Instructions, weights, and the memory that a stream needs.

    unlinked, table      the rows with kernel numbers, and with addresses; ``row_count`` of them
    instructions         the instructions; empty if the program is from a file, which has only their rows
    kernel_names         the names of the kernels that they run
    weights              bytes that all streams share and only read
    initial              the bytes of a stream's state before its first pulse
    arena_bytes          the bytes of the arena of a step on one thread
    input_places, output_places  names and places of inputs and outputs
    fetched_places       places of other fetched wires
    length_registers     the lengths that rows read, and their byte offsets in the state
    counters             each fault check (node, op, check), and the byte offset of its counter in the state
    specialised_kernels  kernels whose rows have their own machine code, if it is on this machine
    fault_total_offset, last_pulse_offset  byte offsets in the state of the count of all faults, and of the number of
                         the last pulse
    """

    NOT_PICKLED = (*Program.NOT_PICKLED, "unlinked", "_linked", "_cuts", "_shared_table")

    unlinked: NDArray[np.int64]
    _linked: NDArray[np.int64] | None = None
    _cuts: "ThreadCuts | None" = None
    _shared_table: "SharedTable | None" = None
    instructions: "tuple[EmittedInstruction, ...]" = ()
    kernel_names: list[str]
    weights: Array
    initial: Array
    arena_bytes: int
    input_places: tuple[tuple[str, Place], ...]
    output_places: tuple[tuple[str, Place], ...]
    fetched_places: tuple[Place, ...]
    length_registers: tuple[tuple[TDim, int], ...]
    counters: tuple[tuple[Site, int], ...]
    specialised_kernels: tuple[str, ...] = ()
    fault_total_offset: int | None
    last_pulse_offset: int | None

    @property
    def backend(self) -> str:
        return "numba"

    @property
    def state_bytes(self) -> int:
        """The bytes of memory of each stream, without the arena."""
        return self.initial.size

    @property
    @abstractmethod
    def row_count(self) -> int:
        """The number of instructions."""

    @property
    @abstractmethod
    def notes(self) -> "Sequence[RowNote]":
        """The note of each instruction, for reports."""

    @property
    def table(self) -> NDArray[np.int64]:
        """The rows with addresses. Raises CompileError: a kernel cannot be compiled."""
        if self._linked is None:
            self.link()
            assert self._linked is not None
        return self._linked

    @table.setter
    def table(self, linked: NDArray[np.int64]) -> None:
        self._linked = linked

    @property
    def thread_cuts(self) -> "ThreadCuts":
        """The rows that run in parts, for streams on several threads."""
        from pulse.program.machine.thread_cuts import cut_for_threads

        if self._cuts is None:
            self._cuts = cut_for_threads(self.unlinked, self.threads)
        return self._cuts

    def with_threads(self, threads: int) -> Self:
        from pulse.program.machine.team import require_threads

        require_threads(threads)
        if threads == self.threads:
            return self
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.threads, other._cuts, other._shared_table = threads, None, None
        return other

    def stream_table(self) -> "tuple[NDArray[np.int64], SharedTable | None]":
        """Return the table for each step of a stream, and what it needs if rows run in parts; keep both alive.

        Raises CompileError: a kernel cannot be compiled; PulseError: this system does not support teams
        """
        if self.threads == 1 or self.thread_cuts.count == 0:
            return self.table, None
        from pulse.program.machine.team import Team
        from pulse.program.machine.thread_cuts import link_parts

        if self._shared_table is None or not self._shared_table.team.is_here:
            team, ticks = Team.of(self.threads), self.measure_step()
            self._shared_table = link_parts(self.unlinked, self.thread_cuts, team, self.arena_bytes, ticks)
        return self._shared_table.table, self._shared_table

    def measure_step(self) -> int:
        """Return the ticks of a step on one thread: the minimum of some steps on separate memory."""
        memories = self.weights, aligned_bytes(self.initial.size), aligned_bytes(self.arena_bytes)
        memories[1][:] = self.initial
        bases = np.array([memory.ctypes.data for memory in memories], np.int64)
        call = self.table.ctypes.data, self.row_count, bases.ctypes.data
        return min(machine.run_timed(*call) for _ in range(MEASURED_STEPS))

    @property
    def helpers(self) -> tuple[int, ...]:
        return () if self._shared_table is None else self._shared_table.team.helpers

    @property
    def stream_arena_bytes(self) -> int:
        """The bytes of a stream's arena: ``arena_bytes``, and the scratch of rows in parts."""
        return (
            self.arena_bytes
            if self.threads == 1
            else align(self.arena_bytes) + self.thread_cuts.scratch_bytes
        )

    @abstractmethod
    def listing(self) -> list[str]:
        """Return the instructions as text: number, kernel, node, fields; preceded by the copies and their reasons."""

    def link(self) -> None:
        """Put the addresses of the kernels into the table, compiling those that are missing."""
        self.table = link(self.unlinked)
        if self.specialised_kernels:
            from pulse.program.specialise.kernel_rows import put_kept_rows

            put_kept_rows(self.unlinked, self.specialised_kernels, self.table)
        machine.RUN.prepare()
