"""Lanes of the numba backend: kernels with weights read them once for all lanes."""

from collections.abc import Sequence

import numpy as np

from pulse.facts import Array
from pulse.program import machine
from pulse.program.kernels.lanes import LANE_WORDS
from pulse.program.lanes import Lanes, lane_count
from pulse.program.memory import ALIGNMENT, Region, aligned, aligned_bytes
from pulse.program.native import NativeProgram, NativeState, Place
from pulse.program.program import Feed
from pulse.program.table import link_lanes


class NativeLanes(Lanes):
    """The memories of all lanes, side by side."""

    def __init__(self, program: NativeProgram, count: int, constants: Feed | None) -> None:
        self._memory, memories = _side_by_side(lane_count(count), program.initial.size)
        self._arena, arenas = _side_by_side(count, program.arena_bytes)
        states = [NativeState(program, constants, *parts) for parts in zip(memories, arenas)]
        super().__init__(program, states)
        self._weights = program.weights
        self._table, self._segments = link_lanes(program.unlinked)
        graph = program.model.graph
        self._inputs = {graph.label(outlet): self._all(program.places[outlet]) for outlet in graph.inputs}
        self._outputs = {name: self._all(place) for name, place in zip(graph.output_names, program.sent)}
        self._constants = states[0].constants
        self._bases = np.zeros((count, LANE_WORDS), np.int64)
        self._own = np.array(
            [
                (program.weights.ctypes.data, m.ctypes.data, a.ctypes.data, 0)
                for m, a in zip(memories, arenas)
            ],
            np.int64,
        )
        self._run_machine = machine.lanes_runner()

    def _all(self, place: Place) -> Array:
        """A tensor of all lanes, [lanes, …]."""
        if place.region is Region.WEIGHTS:
            known = place.view(self._weights)
            return np.broadcast_to(known, (len(self._memory), *known.shape))
        memory = self._memory if place.region is Region.STATE else self._arena
        if 0 in place.shape:
            return np.empty((len(memory), *place.shape), place.dtype)
        strides = (memory.strides[0], *place.strides)
        return np.ndarray((len(memory), *place.shape), place.dtype, memory.data, place.offset, strides)

    def _run(self, feed: dict[str, Array], lanes: Sequence[int]) -> dict[str, Array]:
        count = len(lanes)
        for name, places in self._inputs.items():
            places[lanes] = feed.get(name, self._constants.get(name))
        if count:
            self._bases[:count] = self._own[lanes]
            self._bases[:count, LANE_WORDS - 1] = count
            segments = self._segments
            self._run_machine(
                self._table.ctypes.data, segments.ctypes.data, len(segments) // 2, self._bases.ctypes.data
            )
        for number in lanes:
            self[number].clock.pulse += 1
        return {name: places[lanes] for name, places in self._outputs.items()}


def _side_by_side(count: int, size: int) -> tuple[Array, list[Array]]:
    """Zeroed bytes for each lane; no two begin at the same place of a page, so that they share the cache."""
    step = aligned(size)
    step += ALIGNMENT if step // ALIGNMENT % 2 == 0 else 0
    memory = aligned_bytes(count * step).reshape(count, step)
    return memory, [row[:size] for row in memory]
