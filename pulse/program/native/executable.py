"""The half of a native program that its streams read: an instruction table over weights, state and arena."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pulse.dim import TDim
from pulse.errors import InputError
from pulse.facts import Array
from pulse.ops.check import Site
from pulse.program.machine import machine
from pulse.program.machine.array_step import ArrayStep, array_step
from pulse.program.machine.python_objects import arrays_are_known
from pulse.program.streams.executable import Executable
from pulse.program.streams.feeds import Feed
from pulse.program.streams.state import State
from pulse.program.table.memory import Region, align
from pulse.program.table.place import Place
from pulse.program.table.table import link

if TYPE_CHECKING:
    from pulse.program.machine.packed import PackedCall
    from pulse.program.machine.team import Team
    from pulse.program.machine.thread_cuts import ThreadCuts
    from pulse.program.native.profile import Profile
    from pulse.program.table.cost import RowNote
    from pulse.program.table.emitted import EmittedInstruction


class NativeExecutable(Executable):
    """Instructions, weights, and the memory that a stream needs.

    unlinked, table  the rows with kernel numbers, and with addresses; ``rows`` of them
    weights          bytes that all streams share and only read
    initial          the bytes of a stream's state before its first pulse
    arena_bytes      scratch of a step
    received, sent   names and places of inputs and outputs; ``fetched``: of other fetched wires
    ends             the lengths that rows read, and their byte offsets in the state
    counters         each fault check (node, op, check), and the byte offset of its counter in the state
    specialised_kernels  kernels whose rows have their own machine code, if it is on this machine
    total_at, last_at  byte offsets in the state of the count of all faults, and of the number of the last pulse
    """

    unlinked: NDArray[np.int64]
    _linked: NDArray[np.int64] | None = None
    _parallel: "tuple[NDArray[np.int64], Team] | None" = None
    weights: Array
    initial: Array
    arena_bytes: int
    received: tuple[tuple[str, Place], ...]
    sent: tuple[tuple[str, Place], ...]
    fetched: tuple[Place, ...]
    ends: tuple[tuple[TDim, int], ...]
    counters: tuple[tuple[Site, int], ...]
    specialised_kernels: tuple[str, ...] = ()
    total_at: int | None
    last_at: int | None

    @property
    def backend(self) -> str:
        return "numba"

    @property
    def state_bytes(self) -> int:
        """The bytes of memory of each stream, without scratch."""
        return self.initial.size

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of instructions."""

    @property
    @abstractmethod
    def notes(self) -> "Sequence[RowNote]":
        """The note of each instruction, for reports."""

    @property
    def table(self) -> NDArray[np.int64]:
        """The rows with addresses. Raises CompileError if a kernel cannot be compiled."""
        if self._linked is None:
            self.link()
            assert self._linked is not None
        return self._linked

    @table.setter
    def table(self, linked: NDArray[np.int64]) -> None:
        self._linked = linked

    @cached_property
    def thread_cuts(self) -> "ThreadCuts":
        """The rows that run in parts, for streams on several threads."""
        from pulse.program.machine.thread_cuts import cut_for_threads

        return cut_for_threads(self.unlinked, self.threads)

    def stream_table(self) -> "tuple[NDArray[np.int64], Team | None]":
        """Return the table for each step of a stream, and the team that runs its rows in parts; keep both alive.

        Raises CompileError; PulseError if this system does not support teams
        """
        if self.threads == 1 or self.thread_cuts.count == 0:
            return self.table, None
        from pulse.program.machine.team import Team
        from pulse.program.machine.thread_cuts import link_parts

        if self._parallel is None or not self._parallel[1].is_here:
            team = Team.of(self.threads)
            self._parallel = link_parts(self.unlinked, self.thread_cuts, team, self.arena_bytes), team
        return self._parallel

    @property
    def helpers(self) -> tuple[int, ...]:
        return () if self._parallel is None else self._parallel[1].helpers

    @property
    def scratch_bytes(self) -> int:
        """The bytes of scratch memory of a step: the arena, and the scratch of rows in parts."""
        return (
            self.arena_bytes
            if self.threads == 1
            else align(self.arena_bytes) + self.thread_cuts.scratch_bytes
        )

    @property
    def emitted_instructions(self) -> "Sequence[EmittedInstruction]":
        """The instructions; empty if the program is from a file, which has only their rows."""
        return ()

    @abstractmethod
    def listing(self) -> list[str]:
        """Return the instructions as text: number, kernel, node, fields; preceded by the copies and their reasons."""

    def link(self) -> None:
        """Put the addresses of the kernels into the table, compiling those that are missing."""
        self.table = link(self.unlinked)
        if self.specialised_kernels:
            from pulse.program.table.kernel_rows import put_kept_rows

            put_kept_rows(self.unlinked, self.specialised_kernels, self.table)
        machine.runner()


def _word(memory: Array, offset: int) -> "memoryview[int]":
    """Return an int64 of a memory as a memoryview, which is faster to read than an array."""
    return memory[offset : offset + 8].data.cast("B").cast("q")


class NativeState(State):
    """One stream: its memory and its scratch."""

    pulses_worth_a_mark = 32
    """A pulse moves most of the memory, so a copy costs little compared with 32 pulses."""

    def __init__(
        self, program: NativeExecutable, constants: Feed | None, memory: Array, arena: Array
    ) -> None:
        super().__init__(program, constants)
        self._program = program
        self._memory = memory
        self.arena = arena
        """Scratch, as bytes."""
        regions = {Region.WEIGHTS: program.weights, Region.STATE: self._memory, Region.ARENA: self.arena}
        self.bases = np.array([memory.ctypes.data for memory in regions.values()], np.int64)
        """Addresses of weights, state and arena."""
        self._inputs = [(name, place.view(regions[place.region])) for name, place in program.received]
        self._outputs = [(name, place.view(regions[place.region])) for name, place in program.sent]
        self._fetched = [place.view(regions[place.region]) for place in program.fetched]
        self._single_pair = self._find_single_pair()
        """Input and output with their names, if the program has one of each and fetches nothing; else None."""
        self._ends = [
            (length, self._memory[offset : offset + 8].view(np.int64)) for length, offset in program.ends
        ]
        self._total = None if program.total_at is None else _word(self._memory, program.total_at)
        self.counts_faults = self._total is not None
        table, self._team = program.stream_table()
        self._table = table
        self.call = (table.ctypes.data, program.rows, self.bases.ctypes.data)
        """The arguments of the machine: address of the table, number of rows, address of ``bases``."""
        self._run_machine = machine.runner()
        self._clear()

    @property
    def memory(self) -> Array:
        """The stream's whole memory as bytes; writes take effect at once."""
        return self._memory

    def _clear(self) -> None:
        self.memory[:] = self._program.initial

    def _find_single_pair(self) -> tuple[str, Array, str, Array] | None:
        if (len(self._inputs), len(self._outputs), len(self._fetched)) != (1, 1, 0) or self.constants:
            return None
        return (*self._inputs[0], *self._outputs[0])

    def _run(self, feed: Feed) -> dict[str, Array]:
        if self._single_pair is not None:
            name, place, to, result = self._single_pair
            place[...] = feed[name]
            self.changing = True
            self._run_machine(*self.call)
            return {to: result.copy()}
        self._run_pulse(feed)
        results: dict[str, Array] = {}
        for name, place in self._outputs:
            results[name] = place.copy()
        return results

    def _run_into(self, feed: Feed, outputs: dict[str, Array]) -> dict[str, Array]:
        self._run_pulse(feed)
        for name, place in self._outputs:
            outputs[name][...] = place
        return outputs

    def _run_pulse(self, feed: Feed) -> None:
        """Run the machine once; its outputs stay in memory until the next pulse."""
        for name, place in self._inputs:
            array = feed.get(name)
            place[...] = self.constants[name] if array is None else array  # each pulse writes all of it
        self.changing = True
        self._run_machine(*self.call)
        if self._fetched:
            self.fetched = [place.copy() for place in self._fetched]

    @cached_property
    def try_step(self) -> ArrayStep:
        if self._fetched or self.program.limit is not None or not arrays_are_known():
            return super().try_step
        return array_step(NativeState.pack(self), self.clock.counter, self._flags)

    def _set_end(self) -> None:
        for length, register in self._ends:
            register[0] = self.clock.frames(length)
        if self._program.last_at is not None and self.clock.last is not None:
            _word(self.memory, self._program.last_at)[0] = self.clock.last

    @property
    def has_faulted(self) -> bool:
        return self._total is not None and self._total[0] != 0

    def take_faults(self) -> int:
        if self._total is None:
            return 0
        count, self._total[0] = self._total[0], 0
        return count

    def _counts(self) -> Iterator[tuple[Site, int]]:
        for site, offset in self._program.counters:
            yield site, _word(self.memory, offset)[0]

    def _save(self) -> bytes:
        return self.memory.tobytes()

    def _load(self, memory: bytes) -> None:
        if len(memory) != self.memory.size:
            raise InputError(
                f"the snapshot holds {len(memory)} bytes of memory, but {self.memory.size} are needed"
            )
        self.changing = True
        self.memory[:] = np.frombuffer(memory, np.uint8)

    def _keep(self) -> Array:
        return self.memory.copy()

    def _put_back(self, memory: Array) -> None:
        self.memory[:] = memory

    def run_machine(self) -> None:
        """Run the table once on the current contents of the inputs; for measurements."""
        self._run_machine(*self.call)

    def pack(self) -> "PackedCall":
        """Return a pulse as one compiled call. The caller must increment ``clock.pulse``."""
        from pulse.program.machine.packed import pack

        streaming = [pair for pair in self._inputs if pair[0] not in self.constants]
        constants = [pair for pair in self._inputs if pair[0] in self.constants]
        total_at = self._program.total_at
        faults = 0 if total_at is None else self.memory.ctypes.data + total_at
        return pack(self.call, streaming, self._outputs, constants, self.constants, faults)

    def profile(self, steps: int = 1000) -> "Profile":
        """Measure the time and cost of each instruction, over steps on noise; the stream's state does not change."""
        from pulse.program.native.profile import measure

        snapshot = self.snapshot()
        rng = np.random.default_rng(0)
        for name, place in self._inputs:
            constant = self.constants.get(name)
            place[...] = (
                rng.standard_normal(place.shape).astype(place.dtype) if constant is None else constant
            )
        try:
            parts = self._program.thread_cuts.counts()
            return measure(self._program.notes, self.call[0], self.call[2], steps, parts)
        finally:
            self.restore(snapshot)
