"""Blocks of sixteen lanes that step together, with interleaved memories."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pulse.facts import Array
from pulse.jit.language.simd import LANES
from pulse.jit.registers import HAS_AVX512
from pulse.program.machine import machine
from pulse.program.native.interleaved_table import InterleavedTable
from pulse.program.native.native_executable import NativeExecutable
from pulse.program.native.sliding_windows import POSITIONS
from pulse.program.streams.feeds import Feed
from pulse.program.streams.lanes import LaneSelection
from pulse.program.table.emitted import make_table
from pulse.program.table.memory import Region
from pulse.program.table.place import Place
from pulse.program.table.table import link
from pulse.support.mapping import aligned_bytes
from pulse.support.record import record


@record(eq=False)
class BlockLanes:
    """A block in a call: its number, and the indices of its lanes in the arrays of the call."""

    block: int
    indices: "slice | NDArray[np.int64]"


@record(eq=False)
class CallBlocks:
    """The blocks of a call, and the indices of its other lanes in the arrays."""

    blocks: tuple[BlockLanes, ...]
    others: NDArray[np.int64]

    @classmethod
    def of(cls, blocks: Iterable[BlockLanes], count: int) -> "CallBlocks":
        """Return the blocks of a call with ``count`` lanes."""
        call_blocks, has_no_block = tuple(blocks), np.ones(count, np.bool_)
        for block in call_blocks:
            has_no_block[block.indices] = False
        return cls(call_blocks, np.flatnonzero(has_no_block))


def fills_blocks(program: NativeExecutable, count: int) -> bool:
    """Return whether this many lanes fill a block, on this processor and without checks of faults."""
    return count >= LANES and HAS_AVX512 and program.fault_total_offset is None


class LaneBlocks:
    """All whole blocks: lanes 0 … 15, 16 … 31 and so on.

    A step of all lanes of a block interleaves their memories. An access to a single lane separates them again.
    """

    def __init__(
        self, program: NativeExecutable, interleaved: InterleavedTable, memory: Array, constants: Feed
    ) -> None:
        self.steady_from = interleaved.steady_from
        self._clock_byte = interleaved.clock_byte
        self._memory = memory = memory[:, : program.initial.size]
        count = len(memory) // LANES
        self._is_interleaved: list[bool] = [False] * count
        """For each block, whether its streams are in the interleaved memory."""
        self._excluded: set[int] = set()
        self._steps = [0] * count
        """For each block, the steps since its streams were interleaved."""
        self._sliding = interleaved.sliding
        self._state_bytes = memory.shape[1] * LANES
        self._positions = [0] * count
        """For each block, how often its windows have advanced since their histories were at the front."""
        self._blocks: list[Array | None] = [None] * count
        self._addresses = [0] * count
        self._arena = aligned_bytes(interleaved.arena_bytes)
        self._weights = interleaved.weights
        self._table = link(make_table(interleaved.instructions))
        self._bases = np.array([interleaved.weights.ctypes.data, 0, self._arena.ctypes.data, 0], np.int64)
        self._call = (self._table.ctypes.data, len(interleaved.instructions), self._bases.ctypes.data)
        self._run = machine.runner()
        self._inputs = self._ports_of_block(program.input_places, interleaved.inputs)
        self._outputs = self._ports_of_block(program.output_places, interleaved.outputs)
        self._constants = constants
        self._last_blocks: tuple[LaneSelection, CallBlocks] | None = None

    def find_blocks(self, selection: LaneSelection, pulses: NDArray[np.int64]) -> CallBlocks:
        """Return the blocks whose lanes all step in this call and are all in the middle of their streams.

        pulses  the pulses that each selected lane has run
        """
        if self._last_blocks is None or self._last_blocks[0] is not selection:
            self._last_blocks = (
                selection,
                CallBlocks.of(self._whole_blocks(selection.numbers), len(selection.numbers)),
            )
        call_blocks, steady_from = self._last_blocks[1], self.steady_from
        if not len(pulses) or pulses.min() >= steady_from:
            return call_blocks
        steady = [part for part in call_blocks.blocks if pulses[part.indices].min() >= steady_from]
        return CallBlocks.of(steady, len(pulses))

    def _whole_blocks(self, numbers: Sequence[int]) -> Iterator[BlockLanes]:
        index_of = {lane: index for index, lane in enumerate(numbers)}
        for block in range(len(self._is_interleaved)):
            indices = [index_of.get(lane, -1) for lane in range(block * LANES, (block + 1) * LANES)]
            if -1 in indices or block in self._excluded:
                continue
            run = slice(indices[0], indices[0] + LANES)
            is_run = indices == list(range(run.start, run.stop))
            yield BlockLanes(block, run if is_run else np.array(indices, np.int64))

    def step(self, part: BlockLanes, feed: Feed, outputs: dict[str, Array]) -> None:
        """Step a block; the arrays are those of all lanes of the call."""
        self._interleave(part.block)
        for name, array in self._inputs:
            values = feed.get(name)
            array[...] = self._constants[name] if values is None else values[part.indices]
        self._run_block(part.block)
        for name, array in self._outputs:
            outputs[name][part.indices] = array

    def _run_block(self, block: int) -> None:
        """Run the instructions on a block's memory, and advance its windows."""
        state, sliding = self._addresses[block], self._sliding
        windows, position = state + self._state_bytes, self._positions[block]
        self._bases[Region.STATE] = state
        self._bases[Region.WINDOWS] = windows + position * sliding.shift
        self._run(*self._call)
        self._steps[block] += 1
        self._positions[block] = position = (position + 1) % POSITIONS
        if position == 0:
            sliding.move_to_front(windows)

    def _ports_of_block(
        self, ports: Sequence[tuple[str, Place]], offsets: Sequence[int]
    ) -> list[tuple[str, Array]]:
        """Return the inputs or outputs of a block with their names, [16, …]."""
        return [
            (name, np.ndarray((LANES, *place.shape), place.dtype, self._arena.data, offset))
            for (name, place), offset in zip(ports, offsets)
        ]

    def _lanes_of(self, block: int) -> Array:
        """Return the memories of a block's lanes, as words."""
        return self._memory[block * LANES : (block + 1) * LANES].view(np.int32)

    def _interleave(self, block: int) -> None:
        """Interleave the streams of a block, if they are not interleaved yet."""
        if self._is_interleaved[block]:
            return
        memory = self._blocks[block]
        if memory is None:
            memory = self._blocks[block] = aligned_bytes(self._state_bytes + self._sliding.bytes)
            self._addresses[block] = memory.ctypes.data
        state, windows = memory[: self._state_bytes], memory[self._state_bytes :]
        state.view(np.int32).reshape(-1, LANES)[...] = self._lanes_of(block).T
        self._sliding.copy_in(state, windows)
        self._steps[block] = self._positions[block] = 0
        self._is_interleaved[block] = True

    def separate(self, lane: int) -> None:
        """Move the streams of a lane's block back to the memories of the lanes."""
        block = lane // LANES
        if block >= len(self._is_interleaved) or not self._is_interleaved[block]:
            return
        memory = self._blocks[block]
        assert memory is not None, "an interleaved block has memory"
        state, windows = memory[: self._state_bytes], memory[self._state_bytes :]
        self._sliding.copy_out(state, windows, self._positions[block])
        self._lanes_of(block)[...] = state.view(np.int32).reshape(-1, LANES).T
        rows = self._memory[block * LANES : (block + 1) * LANES]
        rows[:, self._clock_byte : self._clock_byte + 8].view(np.int64)[...] += self._steps[block]
        self._is_interleaved[block] = False

    def exclude(self, lane: int) -> None:
        """Never interleave the block of a lane again, since other code writes to its memory."""
        self.separate(lane)
        self._excluded.add(lane // LANES)
        self._last_blocks = None
