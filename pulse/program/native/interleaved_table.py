"""Instructions for sixteen streams with interleaved memories: a vector holds one element of each stream.

A word of four bytes of a stream's state or arena becomes sixteen words, one of each stream. So an instruction runs
once for all streams with full vectors, even for small tensors.

The instructions are valid in the middle of a stream: every frame of a pulse belongs to its stream, and no initial
state is loaded. A stream before pulse ``steady_from``, or after its end, runs by itself.
"""

from collections.abc import Iterable
from math import prod
from typing import Any

from pulse.facts import F32, Array
from pulse.jit.language.simd import LANES
from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.time import TickRow
from pulse.program.lower.interleaved import families as families
from pulse.program.lower.interleaved.copy import trim_fills
from pulse.program.lower.interleaved.lowering import (
    LANE_WORD,
    InterleavedLowering,
    NotInterleavedError,
    byte_of,
)
from pulse.program.native.native_executable import NativeExecutable
from pulse.program.native.sliding_windows import SlidingWindows, find_sliding_windows
from pulse.program.table.emitted import EmittedInstruction
from pulse.program.table.loops import Loops
from pulse.program.table.memory import Buffer, Region, TensorView, align, dense_strides
from pulse.program.table.place import Place
from pulse.support.record import record


@record
class InterleavedTable:
    """The interleaved instructions, their weights, and the pulse from which on they are valid.

    instructions  the instructions
    weights       their weights, as bytes
    steady_from   the pulses of a stream after which they are valid
    clock_byte    the byte offset of the pulse counter in a stream's state, which the instructions do not change
    inputs        the byte offset in the arena of each input's sixteen tensors, one after another
    outputs       the byte offset of each output's sixteen tensors
    arena_bytes   the bytes of their arena
    sliding       the delays that are not in the interleaved state while the streams step
    """

    instructions: tuple[EmittedInstruction, ...]
    weights: Array
    steady_from: int
    clock_byte: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    arena_bytes: int
    sliding: SlidingWindows


class PortBuffers:
    """Memory after the interleaved arena, for contiguous tensors of each of sixteen streams."""

    def __init__(self, lowering: InterleavedLowering, arena_bytes: int) -> None:
        self._lowering = lowering
        self.end = align(arena_bytes * LANES)

    def add(self, place: Place, incoming: bool) -> tuple[int, list[Instruction]]:
        """Allocate a tensor; return its byte offset and the copies to the interleaved memory or back."""
        if place.region is Region.WEIGHTS or place.dtype.itemsize != LANE_WORD:
            raise NotInterleavedError("an input or output that is not one word, or constant")
        size = prod(place.shape)
        byte = self._allocate(size)
        separate = _words(Region.ARENA, byte, size * LANES)
        interleaved = _words(place.region, place.offset * LANES, size * LANES)
        steps = tuple(step // LANE_WORD * LANES for step in place.strides)
        dense = dense_strides(place.shape, range(len(place.shape)))
        if incoming:
            loops = Loops((*place.shape, LANES), ((*dense, size), (*steps, 1)))
            return byte, list(self._lowering.copy_words(separate, interleaved, loops))
        copies: list[Instruction] = []
        ordered_steps = tuple(step * LANES for step in dense)
        # first in the order of the tensor
        if len(Loops(place.shape, (steps, ordered_steps)).merge().sizes) > 1:
            ordered = _words(Region.ARENA, self._allocate(size), size * LANES)
            loops = Loops((*place.shape, LANES), ((*steps, 1), (*ordered_steps, 1)))
            copies += self._lowering.copy_words(interleaved, ordered, loops)
            interleaved, steps = ordered, ordered_steps
        loops = Loops((LANES, *place.shape), ((1, *steps), (size, *dense)))
        return byte, [*copies, *self._lowering.copy_words(interleaved, separate, loops)]

    def _allocate(self, size: int) -> int:
        """Return the offset of new memory for a tensor of ``size`` words."""
        byte, self.end = self.end, self.end + align(size * LANE_WORD * LANES)
        return byte


def _words(region: Region, byte: int, count: int) -> TensorView:
    """Return a tensor of words from a byte on."""
    return TensorView(Buffer(region, count * LANE_WORD, byte), 0, (count,), (1,), F32)


def interleave(program: NativeExecutable) -> InterleavedTable:
    """Convert the instructions for sixteen streams.

    Raises NotInterleavedError: they are unknown, or one cannot be converted
    """
    rows = program.instructions
    ticks = [row.instruction for row in rows if isinstance(row.instruction, TickRow)]
    if not rows:
        raise NotInterleavedError("its file has no instructions, only compiled rows")
    if len(ticks) != 1:
        raise NotInterleavedError(f"it has {len(ticks)} clocks")
    (tick,) = ticks
    clock: Any = tick.clock
    sliding = find_sliding_windows(
        rows, [place for _, place in (*program.input_places, *program.output_places)]
    )
    lowering = InterleavedLowering(program.weights, clock, sliding.buffer_for)
    port_buffers = PortBuffers(lowering, program.arena_bytes)
    entries = [port_buffers.add(place, True) for _, place in program.input_places]
    body = [
        EmittedInstruction(instruction, row.node, row.op)
        for row in trim_fills(rows)
        if row.instruction is not tick and row.instruction not in sliding.moves
        for instruction in _convert(lowering, row)
    ]
    exits = [port_buffers.add(place, False) for _, place in program.output_places]
    copies_in = [EmittedInstruction(copy, "", "input") for _, copies in entries for copy in copies]
    copies_out = [EmittedInstruction(copy, "", "output") for _, copies in exits for copy in copies]
    return InterleavedTable(
        instructions=(*copies_in, *body, *copies_out),
        weights=lowering.image.assemble(),
        steady_from=lowering.steady_from,
        clock_byte=byte_of(clock),
        inputs=tuple(byte for byte, _ in entries),
        outputs=tuple(byte for byte, _ in exits),
        arena_bytes=port_buffers.end,
        sliding=sliding,
    )


def _convert(lowering: InterleavedLowering, row: EmittedInstruction) -> Iterable[Instruction]:
    """Return the interleaved instructions for one row. Raises NotInterleavedError: it has none."""
    try:
        return tuple(lowering.convert(row.instruction))
    except NotInterleavedError as error:
        raise NotInterleavedError(f"{row.node or row.kernel}: {error}") from None
