"""The delays of sixteen interleaved streams, whose windows slide through memory instead of moving back at each pulse.

A step reads each delay in a window: the history, then the newest pulse. After the step the window has to begin one
pulse later. A single stream moves the history to the front. The histories of sixteen streams are larger than the near
caches, so here the window advances, and all histories move to the front once in ``POSITIONS`` pulses.
"""

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pulse.facts import Array
from pulse.jit.language.simd import LANES
from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.copy import MoveRow
from pulse.program.lower.interleaved.lowering import LANE_WORD, byte_of
from pulse.program.table.emitted import EmittedInstruction
from pulse.program.table.memory import Buffer, Region, align
from pulse.program.table.place import Place
from pulse.support.record import record

POSITIONS = 16
"""The pulses between two moves of the histories. Each further one needs memory for a pulse of each delay."""
MIN_HISTORY = 2
"""The pulses of history from which on a window slides; a shorter one costs less to move than fresh memory."""


@record
class SlidingWindow:
    """The window of a delay.

    start   its first byte in the state of a stream
    size    its bytes in the state of a stream
    offset  the first byte of its memory for sixteen streams, in the memory of all windows
    """

    start: int
    size: int
    offset: int


@record
class SlidingWindows:
    """The windows that advance by the same number of bytes at each pulse.

    windows  each of them
    shift    the bytes by which they advance, of sixteen streams
    moves    the instructions that moved the histories of one stream
    bytes    the size of the memory of all windows
    """

    windows: tuple[SlidingWindow, ...] = ()
    shift: int = 0
    moves: tuple[Instruction, ...] = ()
    bytes: int = 0

    def buffer_for(self, buffer: Buffer) -> Buffer | None:
        """Return the memory that a delay's buffer has for sixteen streams; None if its window does not slide."""
        for window in self.windows:
            if buffer.region is Region.STATE and buffer.offset == window.start:
                return Buffer(Region.WINDOWS, window.size * LANES, window.offset)
        return None

    def copy_in(self, state: Array, memory: Array) -> None:
        """Copy the windows from the interleaved state to the front of their memory."""
        for window in self.windows:
            size, begin = window.size * LANES, window.start * LANES
            memory[window.offset : window.offset + size] = state[begin : begin + size]

    def copy_out(self, state: Array, memory: Array, position: int) -> None:
        """Copy the windows, which have advanced ``position`` times, back to the interleaved state."""
        for window in self.windows:
            size, begin = window.size * LANES, window.start * LANES
            offset = window.offset + position * self.shift
            state[begin : begin + size] = memory[offset : offset + size]

    def move_to_front(self, address: int) -> None:
        """Move all histories to the front, after ``POSITIONS`` pulses; ``address`` is that of the memory."""
        for window in self.windows:
            front = address + window.offset
            ctypes.memmove(front, front + POSITIONS * self.shift, window.size * LANES - self.shift)


def find_sliding_windows(rows: Sequence[EmittedInstruction], ports: Iterable[Place]) -> SlidingWindows:
    """Return the windows that can slide, of the shift for which most bytes would be moved.

    ports  the inputs and outputs, which are never in a window that slides
    """
    port_offsets = [place.offset for place in ports if place.region is Region.STATE]
    by_shift: dict[int, list[tuple[MoveRow, Buffer]]] = {}
    for move, buffer, shift in _moves(rows):
        if not any(buffer.offset <= offset < buffer.offset + buffer.size for offset in port_offsets):
            by_shift.setdefault(shift, []).append((move, buffer))
    if not by_shift:
        return SlidingWindows()
    shift = max(by_shift, key=lambda shift: sum(move.bytes for move, _ in by_shift[shift]))
    windows: list[SlidingWindow] = []
    end = 0
    for _, buffer in by_shift[shift]:
        windows.append(SlidingWindow(buffer.offset, buffer.size, end))
        end += align((buffer.size + (POSITIONS - 1) * shift) * LANES)
    return SlidingWindows(tuple(windows), shift * LANES, tuple(move for move, _ in by_shift[shift]), end)


def _moves(rows: Sequence[EmittedInstruction]) -> Iterator[tuple[MoveRow, Buffer, int]]:
    """Yield the moves of long histories to the front of delays that no later row touches: row, buffer, shift."""
    later: set[int] = set()
    for row in reversed(rows):
        move = row.instruction
        touched = {value.buffer.offset for value in row.operands if value.buffer.region is Region.STATE}
        if isinstance(move, MoveRow):
            target: Any = move.dst
            source: Any = move.src
            buffer, shift = target.buffer, byte_of(source) - byte_of(target)
            if (
                buffer is source.buffer
                and buffer.region is Region.STATE
                and byte_of(target) == buffer.offset
                and shift + move.bytes == buffer.size
                and shift % LANE_WORD == 0
                and 0 < MIN_HISTORY * shift <= move.bytes
                and not touched & later
            ):
                yield move, buffer, shift
        later |= touched
