"""A trial of several tables of one program on separate memory: are the results equal, and how fast are they?"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pulse.facts import Array
from pulse.program.machine import machine
from pulse.program.native.native_executable import NativeExecutable
from pulse.program.table.memory import Region
from pulse.program.table.table import RowTable
from pulse.support.mapping import aligned_bytes

COMPARED_PULSES = 16
"""The pulses that are compared, each with new noise."""
MEASURED_STEPS = 200
"""The steps that are measured for each table, in turns."""
NOISE_SCALE = 0.3
"""The scale of the noise."""


class SpecialisationTrial:
    """A program's rows, run on separate memory with noise as input."""

    def __init__(self, program: NativeExecutable) -> None:
        self.row_count = program.row_count
        self._program = program
        self._state, self._arena = aligned_bytes(program.initial.size), aligned_bytes(program.arena_bytes)
        regions = {Region.WEIGHTS: program.weights, Region.STATE: self._state, Region.ARENA: self._arena}
        self._bases = np.array([memory.ctypes.data for memory in regions.values()], np.int64)
        self._inputs = [place.view(regions[place.region]) for _, place in program.input_places]
        self._begin()

    def _begin(self) -> None:
        self._state[:] = self._program.initial
        self._arena[:] = 0
        self._feed(np.random.default_rng(0))

    def _feed(self, rng: np.random.Generator) -> None:
        for place in self._inputs:
            place[...] = (rng.standard_normal(place.shape) * NOISE_SCALE).astype(place.dtype)

    def agree(self, left: RowTable, right: RowTable) -> bool:
        """Return whether both tables leave the same bytes in state and arena after each of the compared pulses."""
        other = SpecialisationTrial(self._program)
        return all(
            np.array_equal(a, b)
            for own_memory, other_memory in zip(self._memories(left), other._memories(right))
            for a, b in zip(own_memory, other_memory)
        )

    def _memories(self, table: RowTable) -> Iterator[tuple[Array, Array]]:
        self._begin()
        rng = np.random.default_rng(1)
        for _ in range(COMPARED_PULSES):
            self._feed(rng)
            machine.run(table.ctypes.data, self.row_count, self._bases.ctypes.data)
            yield self._state, self._arena

    def row_ticks(self, tables: Sequence[RowTable]) -> list[NDArray[np.int64]]:
        """Measure the ticks of each row for each table: the minimum over steps in turns, to exclude other work."""
        minimum = [np.full(self.row_count, np.iinfo(np.int64).max) for _ in tables]
        for _ in range(MEASURED_STEPS):
            for index, table in enumerate(tables):
                ticks = np.zeros(self.row_count, np.int64)
                machine.run_profiled(
                    table.ctypes.data, self.row_count, self._bases.ctypes.data, ticks.ctypes.data
                )
                minimum[index] = np.minimum(minimum[index], ticks)
        return minimum

    def step_seconds(self, tables: Sequence[RowTable]) -> list[float]:
        """Measure the seconds of a step for each table: the minimum over steps in turns."""
        minimum = [np.inf] * len(tables)
        for _ in range(MEASURED_STEPS):
            for index, table in enumerate(tables):
                call = table.ctypes.data, self.row_count, self._bases.ctypes.data
                machine.run(*call)
                minimum[index] = min(minimum[index], machine.run_timed(*call) / machine.ticks_per_second())
        return minimum
