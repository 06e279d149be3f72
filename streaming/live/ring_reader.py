"""RingReader: reads the frames that pass through a ring of a pipeline, without disturbing it."""

import numpy as np

from pulse.support.not_copyable import NotCopyable
from streaming.audio.channels import Samples
from streaming.native import positions
from streaming.native.control_block import ControlBlock


class RingReader(NotCopyable, reason="it reads memory of one run by its address; make another one"):
    """Reads the frames written to a ring since the last call.

    ring         [frames, channels], a power of two of frames
    control      the control block of the pipeline
    position     the field that says how many frames have been written
    first        the first frame to read; the next one if None
    lost_frames  frames that were overwritten before they were read
    """

    def __init__(self, ring: Samples, control: ControlBlock, position: str, first: int | None = None) -> None:
        self._ring, self._control, self._position = ring, control, position
        self._read = self._read_written() if first is None else first
        self._margin = len(ring) // 4
        self.lost_frames = 0

    def read(self) -> Samples:
        """Take a copy of new frames, [frames, channels]; leave out and count those that may be overwritten by then."""
        written = max(self._read_written(), self._read)
        self._skip_to(written - len(self._ring) + self._margin)
        first, count, capacity = self._read, written - self._read, len(self._ring)
        frames = self._ring[np.arange(first, first + count) & (capacity - 1)]
        self._read = written
        torn = self._read_written() - capacity + self._margin - first
        if torn > 0:
            torn = min(torn, count)
            self.lost_frames += torn
            frames = frames[torn:]
        return frames

    def read_peaks(self) -> tuple[float, ...]:
        """Return the peak of each channel since the last call."""
        frames = self.read()
        if not len(frames):
            return (0.0,) * self._ring.shape[1]
        return tuple(float(peak) for peak in np.abs(frames).max(axis=0))

    def _read_written(self) -> int:
        return positions.load(self._control, self._position)

    def _skip_to(self, first: int) -> None:
        if first > self._read:
            self.lost_frames += first - self._read
            self._read = first
