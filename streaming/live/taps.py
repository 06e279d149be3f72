"""Taps: what went through a pipeline's rings, read beside it without disturbing it."""

import numpy as np

from pulse.support.not_copyable import NotCopyable
from streaming.native import positions
from streaming.native.control_block import ControlBlock
from streaming.sound.channels import Samples


class Tap(NotCopyable):
    """The frames of a ring since the last reading.

    ring      [frames, channels], a power of two of frames
    control   the control block of the pipeline
    position  the field that says how many frames have been written
    first     the first frame that is read; the next one where None
    lost      frames that were overwritten before they were read
    """

    why_not = "it reads memory of one run by its address; make another one"

    def __init__(self, ring: Samples, control: ControlBlock, position: str, first: int | None = None) -> None:
        self._ring, self._control, self._position = ring, control, position
        self._read = self._read_written() if first is None else first
        self._margin = len(ring) // 4
        self.lost = 0

    def read(self) -> Samples:
        """[frames, channels], a copy; those that may be overwritten meanwhile are left out, and counted."""
        written = max(self._read_written(), self._read)
        self._skip_to(written - len(self._ring) + self._margin)
        first, count, capacity = self._read, written - self._read, len(self._ring)
        places = np.arange(first, first + count) & (capacity - 1)
        frames = self._ring[places]
        self._read = written
        torn = self._read_written() - capacity + self._margin - first
        if torn > 0:
            torn = min(torn, count)
            self.lost += torn
            frames = frames[torn:]
        return frames

    def peaks(self) -> tuple[float, ...]:
        """The peak of each channel since the last reading."""
        frames = self.read()
        if not len(frames):
            return (0.0,) * self._ring.shape[1]
        return tuple(float(peak) for peak in np.abs(frames).max(axis=0))

    def _read_written(self) -> int:
        return positions.load(self._control, self._position)

    def _skip_to(self, first: int) -> None:
        if first > self._read:
            self.lost += first - self._read
            self._read = first
