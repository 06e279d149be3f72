"""One stream of a native program: its memory, and its pulses."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pulse.facts import Array
from pulse.ops.check import Site
from pulse.program.machine import machine
from pulse.program.machine.array_step import ArrayStep, array_step
from pulse.program.machine.python_objects import arrays_are_known
from pulse.program.native.native_executable import NativeExecutable
from pulse.program.streams.feeds import Feed
from pulse.program.streams.state import State, split_memory
from pulse.program.table.memory import Region

if TYPE_CHECKING:
    from pulse.program.machine.packed import PackedCall
    from pulse.program.native.profile import Profile


def _word(memory: Array, offset: int) -> "memoryview[int]":
    """Return an int64 of a memory as a memoryview, which is faster to read than an array."""
    return memory[offset : offset + 8].data.cast("B").cast("q")


class NativeState(State):
    """One stream: its state and its arena."""

    min_pulses_to_mark = 32
    """A pulse moves most of the memory, so a copy costs little compared with 32 pulses."""

    def __init__(
        self, program: NativeExecutable, constants: Feed | None, memory: Array, arena: Array
    ) -> None:
        super().__init__(program, constants)
        self._program = program
        self._memory = memory
        self.arena = arena
        """The arena, as bytes."""
        regions = {Region.WEIGHTS: program.weights, Region.STATE: self._memory, Region.ARENA: self.arena}
        self.bases = np.array([memory.ctypes.data for memory in regions.values()], np.int64)
        """Addresses of weights, state and arena."""
        self._inputs = [(name, place.view(regions[place.region])) for name, place in program.input_places]
        self._outputs = [(name, place.view(regions[place.region])) for name, place in program.output_places]
        self._fetched = [place.view(regions[place.region]) for place in program.fetched_places]
        self._single_pair = self._find_single_pair()
        """Input and output with their names, if the program has one of each and fetches nothing; else None."""
        self._length_registers = [
            (length, self._memory[offset : offset + 8].view(np.int64))
            for length, offset in program.length_registers
        ]
        self._total = (
            None if program.fault_total_offset is None else _word(self._memory, program.fault_total_offset)
        )
        self.counts_faults = self._total is not None
        table, self._shared_table = program.stream_table()
        self._table = table
        self.call = (table.ctypes.data, program.row_count, self.bases.ctypes.data)
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

    def prepare_step(self) -> None:
        """Link the compiled call of ``step`` now, so that the first pulse takes no longer than the others."""
        _ = self.try_step

    def _set_end(self) -> None:
        for length, register in self._length_registers:
            register[0] = self.clock.frames(length)
        if self._program.last_pulse_offset is not None and self.clock.last is not None:
            _word(self.memory, self._program.last_pulse_offset)[0] = self.clock.last

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

    def _memory_bytes(self) -> bytes:
        return self.memory.tobytes()

    def _set_memory_bytes(self, memory: bytes) -> None:
        (contents,) = split_memory(memory, [self.memory])
        self.changing = True
        self.memory[:] = contents

    def _copy_memory(self) -> Array:
        return self.memory.copy()

    def _restore_memory(self, memory: Array) -> None:
        self.memory[:] = memory

    def run_machine(self) -> None:
        """Run the table once on the current contents of the inputs; for measurements."""
        self._run_machine(*self.call)

    def pack(self) -> "PackedCall":
        """Return a pulse as one compiled call. The caller must increment ``clock.pulse``."""
        from pulse.program.machine.packed import pack

        streaming = [pair for pair in self._inputs if pair[0] not in self.constants]
        constants = [pair for pair in self._inputs if pair[0] in self.constants]
        offset = self._program.fault_total_offset
        faults = 0 if offset is None else self.memory.ctypes.data + offset
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
