"""Blocks of any size in, pulses of constant size out."""

from math import prod

import numpy as np

from pulse.facts import Array
from pulse.ops.stateful import frames_at
from pulse.pulsify.model import Port


class Reblocker:
    """The frames of one input that wait for a pulse to fill.

    A pulse that lies whole within the block at hand is a view of it; only the frames of a pulse that spans
    two blocks are copied. The buffer holds one pulse and grows where another input lags behind.
    """

    def __init__(self, port: Port) -> None:
        assert port.axis is not None
        self.port = port
        self.axis = port.axis
        self.frames = port.frames
        self._buffer = np.zeros(port.shape, port.dtype)
        self._frame = port.shape[: port.axis] + port.shape[port.axis + 1 :]
        self._start = 0
        self._stop = 0
        self._nothing = np.zeros(self.shape(0), port.dtype)
        self._block = self._nothing
        self._taken = 0

    @property
    def held(self) -> int:
        """Frames that wait."""
        return self._stop - self._start + self._block.shape[self.axis] - self._taken

    def feed(self, block: Array) -> None:
        """Add a block; ``take`` its pulses, then ``keep`` the rest before the caller has it back."""
        self._block, self._taken = block, 0

    def take(self) -> Array:
        """The next pulse, valid until the next call. At least ``frames`` frames must be held."""
        waiting = self._stop - self._start
        if waiting == 0:
            if self._block.shape[self.axis] == self.frames:
                self._taken = self.frames
                return self._block
            pulse = frames_at(self._block, self.axis, self._taken, self._taken + self.frames)
            self._taken += self.frames
            return pulse
        if waiting < self.frames:
            self._append(self.frames - waiting)
        pulse = frames_at(self._buffer, self.axis, self._start, self._start + self.frames)
        self._start += self.frames
        if self._start == self._stop:
            self._start = self._stop = 0
        return pulse

    def keep(self) -> None:
        """Copy what is left of the block, so that the caller may change it."""
        left = self._block.shape[self.axis] - self._taken
        if left:
            self._append(left)
        self._block, self._taken = self._nothing, 0

    def rest(self) -> Array:
        """All frames that wait, a view. The block must be kept."""
        return frames_at(self._buffer, self.axis, self._start, self._stop)

    def clear(self) -> None:
        """Forget all frames."""
        self._start = self._stop = 0

    def dump(self) -> bytes:
        """The waiting frames as bytes. The block must be kept."""
        return self.rest().tobytes()

    def load(self, memory: bytes, frames: int) -> None:
        """The reverse of ``dump``."""
        self.clear()
        shape = self.shape(frames)
        self.feed(np.frombuffer(memory, self.port.dtype).reshape(shape))
        self.keep()

    def fits(self, block: Array) -> bool:
        """Whether a block has the port's shape, any number of frames aside."""
        axis, shape = self.axis, block.shape
        return len(shape) > axis and shape[:axis] + shape[axis + 1 :] == self._frame

    def shape(self, frames: int) -> tuple[int, ...]:
        """The shape of a block."""
        return (*self._frame[: self.axis], frames, *self._frame[self.axis :])

    def nbytes(self, frames: int) -> int:
        """The size of a block."""
        return prod(self.shape(frames)) * self.port.dtype.itemsize

    def _append(self, frames: int) -> None:
        """Move frames from the block to the end of the buffer, which is moved or doubled where it is full."""
        capacity = self._buffer.shape[self.axis]
        waiting = self._stop - self._start
        if self._stop + frames > capacity:
            source = self.rest()
            if waiting + frames > capacity // 2 and waiting + frames > self.frames:
                self._buffer = np.zeros(self.shape(2 * (waiting + frames)), self.port.dtype)
                frames_at(self._buffer, self.axis, 0, waiting)[...] = source
            else:
                frames_at(self._buffer, self.axis, 0, waiting)[...] = source.copy()
            self._start, self._stop = 0, waiting
        block = frames_at(self._block, self.axis, self._taken, self._taken + frames)
        frames_at(self._buffer, self.axis, self._stop, self._stop + frames)[...] = block
        self._stop += frames
        self._taken += frames
