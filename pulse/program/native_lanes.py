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
"""Bytes of states and arenas that stay in a cache of the core while a group runs; of most is twice as much."""
FEWEST = 8
"""Lanes of a group, where there are as many: the most that a kernel has in registers at once."""


@dataclass(frozen=True)
class Tensor:
    """An input or output: [lanes, …] in the memory of states, else [places of a group, …]."""

    name: str
    array: Array
    by_lane: bool

    def of(self, lanes: NDArray[np.int64]) -> Array | NDArray[np.int64] | slice:
        """What picks the tensors of a group of lanes."""
        return lanes if self.by_lane else slice(len(lanes))


class NativeLanes(Lanes):
    """The memories of all lanes, side by side.

    Lanes run in groups: the whole table for one, then for the next. A group is so large that its memory is as large
    as the weights, which it reads once, or stays in the cache. Arenas belong to the places in a group, not to lanes.
    """

    def __init__(self, program: NativeProgram, count: int, constants: Feed | None) -> None:
        room = max(CACHE, program.weights.size) // (program.initial.size + program.arena_bytes)
        self._group = min(lane_count(count), max(FEWEST, room))
        self._memory, memories = _side_by_side(count, program.initial.size)
        self._arena, arenas = _side_by_side(self._group, program.arena_bytes)
        super().__init__(program, [NativeState(program, constants, memory, arenas[0]) for memory in memories])
        self._weights = program.weights
        graph = program.model.graph
        self._inputs = [self._tensor(graph.label(outlet), program.places[outlet]) for outlet in graph.inputs]
        self._outputs = [self._tensor(name, place) for name, place in zip(graph.output_names, program.sent)]
        self._constants = self[0].constants
        self._addresses = np.array([memory.ctypes.data for memory in memories], np.int64)
        self._bases = np.zeros((self._group, LANE_WORDS), np.int64)
        self._bases[:, Region.WEIGHTS] = program.weights.ctypes.data
        self._bases[:, Region.ARENA] = [arena.ctypes.data for arena in arenas]
        table, segments, bases = program.table, *link_lanes(program.unlinked), self._bases.ctypes.data
