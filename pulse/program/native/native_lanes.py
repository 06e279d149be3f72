"""Lanes of the numba backend.

Blocks of sixteen have interleaved memories; the others are in groups that share each reading of the weights.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pulse.facts import Array
from pulse.jit.lane_bases import LANE_COUNT_WORD, LANE_WORDS, MIN_SHARING_LANES
from pulse.jit.registry import KERNELS
from pulse.jit.rows.fields import FLOAT_BYTES
from pulse.program.kernels import families as families
from pulse.program.machine import machine
from pulse.program.machine.array_step import ArrayStep
from pulse.program.machine.packed import PackedCall
from pulse.program.native.interleaved_table import InterleavedTable
from pulse.program.native.lane_blocks import CallBlocks, LaneBlocks
from pulse.program.native.native_executable import NativeExecutable
from pulse.program.native.native_state import NativeState
from pulse.program.streams.feeds import Feed
from pulse.program.streams.lanes import Lanes, LaneSelection, require_lane_count
from pulse.program.table.cost import RowNote
from pulse.program.table.memory import Region, align
from pulse.program.table.place import Place
from pulse.program.table.table import link_lanes
from pulse.support.mapping import ALIGNMENT, aligned_bytes
from pulse.support.record import record

CACHE_BYTES = 1 << 20
"""The bytes of states and arenas that a core's cache holds, in addition to some weights, while a group runs."""
MIN_GROUP_LANES = 8
"""The fewest lanes of a group, if enough lanes exist: the most whose sums a kernel keeps in registers."""


@record
class LanePort:
    """An input or output, [lanes, …]: of all lanes if it is in their states, else of the arenas of a group."""

    name: str
    array: Array
    of_all_lanes: bool

    def read(self, lanes: NDArray[np.int64]) -> Array:
        """Return a copy of the values of a group's lanes."""
        return self.array[lanes] if self.of_all_lanes else self.array[: len(lanes)].copy()

    def write(self, lanes: NDArray[np.int64], values: Array) -> None:
        """Set the values of a group's lanes."""
        if self.of_all_lanes:
            self.array[lanes] = values
        else:
            self.array[: len(lanes)] = values


class LaneState(NativeState):
    """The stream of one lane. Each use separates its interleaved block."""

    def __init__(
        self, program: NativeExecutable, constants: Feed | None, memory: Array, arena: Array, lane: int
    ) -> None:
        self._lane = lane
        self.blocks: LaneBlocks | None = None
        """The blocks that may hold the stream."""
        super().__init__(program, constants, memory, arena)

    def _separate(self) -> None:
        if self.blocks is not None:
            self.blocks.separate(self._lane)

    @property
    def memory(self) -> Array:
        """A view of the stream's whole memory as bytes, which is valid until the lanes step; later writes are lost."""
        self._separate()
        return super().memory

    @property
    def try_step(self) -> ArrayStep:  # pyright: ignore[reportIncompatibleVariableOverride]
        # A property: it separates at each call, and a closure over the lane would be a reference cycle.
        self._separate()
        return super().try_step

    def _run(self, feed: Feed) -> dict[str, Array]:
        self._separate()
        return super()._run(feed)

    def _run_into(self, feed: Feed, outputs: dict[str, Array]) -> dict[str, Array]:
        self._separate()
        return super()._run_into(feed, outputs)

    def _set_end(self) -> None:
        self._separate()
        super()._set_end()

    def run_machine(self) -> None:
        self._separate()
        super().run_machine()

    def pack(self) -> PackedCall:
        if self.blocks is not None:
            self.blocks.exclude(self._lane)
        return super().pack()


class NativeLanes(Lanes):
    """The memories of all lanes.

    Blocks of sixteen in the middle of their streams step with interleaved memories, if the program can be interleaved.
    The other lanes step in groups. Each position in a group has an arena.
    """

    def __init__(
        self,
        program: NativeExecutable,
        count: int,
        constants: Feed | None,
        interleaved: InterleavedTable | None = None,
    ) -> None:
        lane_bytes = program.initial.size + program.arena_bytes
        self._group = group_size(require_lane_count(count), lane_bytes, program.weights.size)
        self._memory, memories = _allocate_memories(count, program.initial.size)
        self._arena, arenas = _allocate_memories(self._group, program.arena_bytes)
        states = [
            LaneState(program, constants, memory, arenas[0], lane) for lane, memory in enumerate(memories)
        ]
        super().__init__(program, states)
        self._reuses = reuses_weights(program.notes)
        self._blocks: LaneBlocks | None = None
        if interleaved is not None:
            self._blocks = LaneBlocks(program, interleaved, self._memory, states[0].constants)
            for state in states:
                state.blocks = self._blocks
        self._fault_counts = self._faults_of(program.fault_total_offset)
        self._weights = program.weights
        self._inputs = [self._lane_port(name, place) for name, place in program.input_places]
        self._outputs = [self._lane_port(name, place) for name, place in program.output_places]
        self._constants = self[0].constants
        self._state_addresses = np.array([memory.ctypes.data for memory in memories], np.int64)
        self._bases = np.zeros((self._group, LANE_WORDS), np.int64)
        self._bases[:, Region.WEIGHTS] = program.weights.ctypes.data
        self._bases[:, Region.ARENA] = [arena.ctypes.data for arena in arenas]
        self._lanes_of_bases: NDArray[np.int64] | None = None
        """The group whose bases are set; the bases are reused by calls for the same lanes."""
        table, segments, count_of_segments = link_lanes(program.unlinked)
        self._tables = program.table, table, segments
        self._call_one = (program.table.ctypes.data, program.row_count)
        self._base_addresses = [row.ctypes.data for row in self._bases]
        self._call_group = (table.ctypes.data, segments.address, count_of_segments, self._bases.ctypes.data)
        self._run_one, self._run_group = machine.runner(), machine.lanes_runner()

    def _faults_of(self, offset: int | None) -> NDArray[np.int64] | None:
        """Return the number of faults of each lane; None if the program cannot have faults."""
        if offset is None:
            return None
        strides = (self._memory.strides[0],)
        return np.ndarray((len(self._memory),), np.int64, self._memory.data, offset, strides)

    def _failed_lanes(self, selection: LaneSelection) -> list[int]:
        if self._fault_counts is None or not np.count_nonzero(self._fault_counts):
            return []
        return super()._failed_lanes(selection)

    def _lane_port(self, name: str, place: Place) -> LanePort:
        if place.region is Region.WEIGHTS:
            value = place.view(self._weights)
            return LanePort(name, np.broadcast_to(value, (self._group, *value.shape)), False)
        of_all_lanes = place.region is Region.STATE
        memory = self._memory if of_all_lanes else self._arena
        if 0 in place.shape:
            return LanePort(name, np.empty((len(memory), *place.shape), place.dtype), of_all_lanes)
        strides = (memory.strides[0], *place.strides)
        shape = (len(memory), *place.shape)
        return LanePort(
            name, np.ndarray(shape, place.dtype, memory.data, place.offset, strides), of_all_lanes
        )

    def _run(self, feed: dict[str, Array], selection: LaneSelection) -> dict[str, Array]:
        self._stepping = selection
        blocks = None if self.alone else self._blocks
        parts = None if blocks is None else blocks.find_blocks(selection, self._pulses[selection.index])
        if blocks is None or parts is None or not parts.blocks:
            results = self._step_groups(feed, selection.index)
        else:
            results = self._step_blocks(blocks, parts, feed, selection.index)
        self._pulses[selection.index] += 1
        return results

    def _step_blocks(
        self, blocks: LaneBlocks, parts: CallBlocks, feed: dict[str, Array], lanes: NDArray[np.int64]
    ) -> dict[str, Array]:
        """Step lanes, some of which form whole blocks."""
        results = {
            port.name: np.empty((len(lanes), *port.shape), port.dtype) for port in self.program.outputs
        }
        for part in parts.blocks:
            blocks.step(part, feed, results)
        if len(parts.others):
            others = {name: array[parts.others] for name, array in feed.items()}
            for name, array in self._step_groups(others, lanes[parts.others]).items():
                results[name][parts.others] = array
        return results

    def _step_groups(self, feed: dict[str, Array], lanes: NDArray[np.int64]) -> dict[str, Array]:
        """Step lanes that are not interleaved, group by group."""
        size = self._group
        if self._blocks is not None:
            for lane in lanes.tolist():
                self._blocks.separate(lane)
        if len(lanes) <= size:
            return self._step_group(feed, lanes)
        groups = [
            self._step_group(
                {name: array[first : first + size] for name, array in feed.items()},
                lanes[first : first + size],
            )
            for first in range(0, len(lanes), size)
        ]
        return {name: np.concatenate([group[name] for group in groups]) for name in groups[0]}

    def _step_group(self, feed: dict[str, Array], lanes: NDArray[np.int64]) -> dict[str, Array]:
        """Step at most one group of lanes."""
        for port in self._inputs:
            array = feed.get(port.name)
            port.write(lanes, self._constants[port.name] if array is None else array)
        if lanes is not self._lanes_of_bases:
            self._lanes_of_bases = None
            self._bases[: len(lanes), Region.STATE] = self._state_addresses[lanes]
            self._bases[0, LANE_COUNT_WORD] = self._shared_lanes(len(lanes))
            self._lanes_of_bases = lanes
        shared = self._shared_lanes(len(lanes))
        if shared:
            self._run_group(*self._call_group)
        for index in range(shared, len(lanes)):
            self._run_one(*self._call_one, self._base_addresses[index])
        return {port.name: port.read(lanes) for port in self._outputs}

    def _shared_lanes(self, count: int) -> int:
        """Return how many lanes of a group share rows; the others run alone, as a single lane always does."""
        sharing = count - count % MIN_SHARING_LANES if self._reuses else count
        return 0 if sharing == 1 or self.alone else sharing


def reuses_weights(rows: Iterable[RowNote]) -> bool:
    """Return whether a single lane uses a weight more than twice in a step.

    If so, fewer than ``MIN_SHARING_LANES`` lanes gain nothing from sharing and run alone.
    """
    costs = [row.cost for row in rows if KERNELS[row.kernel].lanes]
    return sum(cost.multiply_adds for cost in costs) * FLOAT_BYTES > 2 * sum(cost.weights for cost in costs)


def group_size(count: int, lane_bytes: int, weights: int) -> int:
    """Return how many of ``count`` lanes run the table together.

    Each group reads the weights once, so groups should be large. But every row runs for one lane after another, so the
    group's memory must stay in the cache, or cost no more than the weights. All groups but the last have equal size, a
    multiple of ``MIN_SHARING_LANES``.
    """
    largest = max(MIN_GROUP_LANES, max(CACHE_BYTES, weights) // lane_bytes)
    even = -(-count // -(-count // largest))
    return min(count, -(-even // MIN_SHARING_LANES) * MIN_SHARING_LANES)


def _allocate_memories(count: int, size: int) -> tuple[Array, list[Array]]:
    """Return zeroed memories that begin at different offsets within a page, so that they use different cache sets."""
    step = align(size)
    step += ALIGNMENT if step // ALIGNMENT % 2 == 0 else 0
    memory = aligned_bytes(count * step).reshape(count, step)
    return memory, [row[:size] for row in memory]
