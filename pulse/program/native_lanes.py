"""Lanes of the numba backend: kernels with weights read them once for a group of lanes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pulse.facts import Array
from pulse.program import machine
from pulse.program.kernels.lanes import COUNT, LANE_WORDS
from pulse.program.lanes import Choice, Lanes, lane_count
from pulse.program.memory import ALIGNMENT, Region, aligned, aligned_bytes
from pulse.program.native import NativeProgram, NativeState, Place
from pulse.program.program import Feed
from pulse.program.table import link_lanes

CACHE = 1 << 20
"""Bytes of states and arenas that a core keeps in its cache, besides some weights, while a group runs."""
FEWEST = 8
"""Lanes of a group, where there are as many: the most whose sums a kernel has in registers at once."""


@dataclass(frozen=True)
class Tensors:
    """An input or output, [lanes, …]: of all lanes where it is in their states, else of the places in a group."""

    name: str
    array: Array
    of_all: bool

    def read(self, lanes: NDArray[np.int64]) -> Array:
        """Those of a group."""
        return self.array[lanes] if self.of_all else self.array[: len(lanes)]

    def write(self, lanes: NDArray[np.int64], values: Array) -> None:
        """Set those of a group."""
        if self.of_all:
            self.array[lanes] = values
        else:
            self.array[: len(lanes)] = values


class NativeLanes(Lanes):
    """The memories of all lanes, side by side.

    They step in groups, one after the other: the weights are read once for each, so it is large, but not so large that
    its own memory costs more: that stays in the cache, or is not larger than the weights. Arenas are scratch: they
    belong to the places in a group.
    """

    def __init__(self, program: NativeProgram, count: int, constants: Feed | None) -> None:
        most = max(CACHE, program.weights.size) // (program.initial.size + program.arena_bytes)
        self._group = min(lane_count(count), max(FEWEST, most))
        self._memory, memories = _side_by_side(count, program.initial.size)
        self._arena, arenas = _side_by_side(self._group, program.arena_bytes)
        super().__init__(program, [NativeState(program, constants, memory, arenas[0]) for memory in memories])
        self._weights = program.weights
        graph = program.model.graph
        self._inputs = [self._tensors(graph.label(outlet), program.places[outlet]) for outlet in graph.inputs]
        self._outputs = [self._tensors(name, place) for name, place in zip(graph.output_names, program.sent)]
        self._constants = self[0].constants
        self._states_at = np.array([memory.ctypes.data for memory in memories], np.int64)
        self._bases = np.zeros((self._group, LANE_WORDS), np.int64)
        self._bases[:, Region.WEIGHTS] = program.weights.ctypes.data
        self._bases[:, Region.ARENA] = [arena.ctypes.data for arena in arenas]
        self._tables = program.table, *link_lanes(program.unlinked)
        single, table, segments = (array.ctypes.data for array in self._tables)
        self._call_one = (single, len(program.instructions), self._bases.ctypes.data)
        self._call_group = (table, segments, len(self._tables[-1]) // 2, self._bases.ctypes.data)
        self._run_one, self._run_group = machine.runner(), machine.lanes_runner()

    def _tensors(self, name: str, place: Place) -> Tensors:
        if place.region is Region.WEIGHTS:
            known = place.view(self._weights)
            return Tensors(name, np.broadcast_to(known, (self._group, *known.shape)), False)
        of_all = place.region is Region.STATE
        memory = self._memory if of_all else self._arena
        if 0 in place.shape:
            return Tensors(name, np.empty((len(memory), *place.shape), place.dtype), of_all)
        strides = (memory.strides[0], *place.strides)
        shape = (len(memory), *place.shape)
        return Tensors(name, np.ndarray(shape, place.dtype, memory.data, place.offset, strides), of_all)

    def _run(self, feed: dict[str, Array], chosen: Choice) -> dict[str, Array]:
        count = len(chosen.numbers)
        results = {port.name: np.empty((count, *port.shape), port.dtype) for port in self.program.outputs}
        for first in range(0, count, self._group):
            lanes = chosen.index[first : first + self._group]
            behind = first + len(lanes)
            for places in self._inputs:
                array = feed.get(places.name)
                places.write(lanes, self._constants[places.name] if array is None else array[first:behind])
            self._bases[: len(lanes), Region.STATE] = self._states_at[lanes]
            self._bases[0, COUNT] = len(lanes)
            if len(lanes) == 1:
                self._run_one(*self._call_one)
            else:
                self._run_group(*self._call_group)
            for places in self._outputs:
                results[places.name][first:behind] = places.read(lanes)
        for clock in chosen.clocks:
            clock.pulse += 1
        return results


def _side_by_side(count: int, size: int) -> tuple[Array, list[Array]]:
    """Zeroed bytes for each of several; no two begin at the same place of a page, so that they share the cache."""
    step = aligned(size)
    step += ALIGNMENT if step // ALIGNMENT % 2 == 0 else 0
    memory = aligned_bytes(count * step).reshape(count, step)
    return memory, [row[:size] for row in memory]
