"""Re-blocking: blocks of any size in, pulses of constant size out."""

from math import prod
from typing import TypeAlias

import numpy as np

from pulse.facts import Array
from pulse.interface import Port
from pulse.ops.clock import frames_at

ReblockerMark: TypeAlias = tuple[Array, int, int]


class Reblocker:
    """The frames of one input that wait for a pulse to fill.

    A pulse inside the current block is a view of it; only the frames of a pulse that spans
    two blocks are copied. The buffer holds one pulse and grows if another input lags behind.

    Frames that wait at a ``mark`` are not overwritten until the next one, so that ``rewind`` has no cost unless called:
    if a buffer would restart, the spare one replaces it.
    """

    def __init__(self, port: Port) -> None:
        assert port.axis is not None
        self.port = port
        self.axis = port.axis
        self.frames = port.frames
        self._buffer: Array = np.zeros(port.shape, port.dtype)
        self._spare: Array = np.zeros(port.shape, port.dtype)
        self._mark: ReblockerMark | None = None
        self._frame = port.shape[: port.axis] + port.shape[port.axis + 1 :]
        self._start = 0
        self._stop = 0
        self._nothing = np.zeros(self.shape(0), port.dtype)
        self._block = self._nothing
        self._taken_frames = 0

    @property
    def pending_frames(self) -> int:
        """The number of waiting frames, including those of the current block."""
        return self._stop - self._start + self._block.shape[self.axis] - self._taken_frames

    @property
    def is_empty(self) -> bool:
        """Whether no frame waits. The block must be kept."""
        return self._stop == self._start

    def mark(self) -> ReblockerMark:
        """Protect the waiting frames and return them for ``rewind``. The block must be kept."""
        self._mark = self._buffer, self._start, self._stop
        return self._mark

    def rewind(self, mark: ReblockerMark) -> None:
        """Restore the state at the last mark."""
        spare = self._buffer
        self._buffer, self._start, self._stop = mark
        if spare is not self._buffer:
            self._spare = spare
        self._block, self._taken_frames = self._nothing, 0

    def feed(self, block: Array) -> None:
        """Add a block; ``take`` its pulses, then ``keep`` the rest before the caller reuses it."""
        self._block, self._taken_frames = block, 0

    def take(self, pulses: int = 1) -> Array:
        """Take the next pulses, joined, valid until the next call. There must be enough frames."""
        buffered, frames = self._stop - self._start, pulses * self.frames
        if buffered == 0:
            if self._block.shape[self.axis] == frames:
                self._taken_frames = frames
                return self._block
            pulse = frames_at(self._block, self.axis, self._taken_frames, self._taken_frames + frames)
            self._taken_frames += frames
            return pulse
        if buffered < frames:
            self._append(frames - buffered)
        pulse = frames_at(self._buffer, self.axis, self._start, self._start + frames)
        self._start += frames
        if self._start == self._stop:
            self._start = self._stop = 0
            if self._mark is not None and self._buffer is self._mark[0]:
                self._buffer, self._spare = self._spare, self._buffer
        return pulse

    def keep(self) -> None:
        """Copy the rest of the block, so that the caller may change it."""
        remaining = self._block.shape[self.axis] - self._taken_frames
        if remaining:
            self._append(remaining)
        self._block, self._taken_frames = self._nothing, 0

    def pending_block(self) -> Array:
        """Return a view of all waiting frames. The block must be kept."""
        return frames_at(self._buffer, self.axis, self._start, self._stop)

    def clear(self) -> None:
        """Forget all frames. The block must be kept."""
        self._start = self._stop = 0

    def dump(self) -> bytes:
        """Return the waiting frames as bytes. The block must be kept."""
        return self.pending_block().tobytes()

    def load(self, memory: bytes, frames: int) -> None:
        """Restore the waiting frames from ``dump``."""
        self.clear()
        shape = self.shape(frames)
        self.feed(np.frombuffer(memory, self.port.dtype).reshape(shape))
        self.keep()

    def fits(self, block: Array) -> bool:
        """Return whether a block has the port's shape, any number of frames aside."""
        axis, shape = self.axis, block.shape
        return len(shape) > axis and shape[:axis] + shape[axis + 1 :] == self._frame

    def shape(self, frames: int) -> tuple[int, ...]:
        """Return the shape of a block."""
        return (*self._frame[: self.axis], frames, *self._frame[self.axis :])

    def nbytes(self, frames: int) -> int:
        """Return the size of a block."""
        return prod(self.shape(frames)) * self.port.dtype.itemsize

    def _append(self, frames: int) -> None:
        """Move frames from the block to the end of the buffer."""
        if self._stop + frames > self._buffer.shape[self.axis]:
            self._move(frames)
        block = frames_at(self._block, self.axis, self._taken_frames, self._taken_frames + frames)
        frames_at(self._buffer, self.axis, self._stop, self._stop + frames)[...] = block
        self._stop += frames
        self._taken_frames += frames

    def _move(self, frames: int) -> None:
        """Move the buffered frames to the beginning, of a larger buffer if this many more do not fit."""
        source, capacity = self.pending_block(), self._buffer.shape[self.axis]
        buffered = source.shape[self.axis]
        target = self._buffer
        if buffered + frames > max(capacity // 2, self.frames):
            target = np.zeros(self.shape(2 * (buffered + frames)), self.port.dtype)
        elif self._mark is not None and self._buffer is self._mark[0]:
            fits = self._spare.shape[self.axis] >= buffered + frames
            target = self._spare if fits else np.zeros_like(self._buffer)
            self._spare = self._buffer
        frames_at(target, self.axis, 0, buffered)[...] = source.copy() if target is self._buffer else source
        self._buffer, self._start, self._stop = target, 0, buffered
