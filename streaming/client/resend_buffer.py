"""ResendBuffer: the frames of an input that a lost server would lose."""

from collections import deque
from collections.abc import Iterator

from pulse.facts import Array
from pulse.ops.clock import frames_at
from streaming.protocol.ports import StreamPort


class ResendBuffer:
    """Blocks of one input by the number of their first frame, kept until a checkpoint includes them."""

    def __init__(self, port: StreamPort) -> None:
        self._axis = port.axis or 0
        self.has_checkpoint = False
        """Whether a server has acknowledged a checkpoint."""
        self._blocks: deque[tuple[int, Array]] = deque()

    def add(self, first: int, frames: Array) -> None:
        """Add a copy of the next block."""
        self._blocks.append((first, frames.copy()))

    def forget(self, first: int) -> None:
        """Forget all frames before this one, which are safe."""
        self.has_checkpoint = self.has_checkpoint or first > 0
        while self._blocks and self._end(*self._blocks[0]) <= first:
            self._blocks.popleft()

    def blocks_from(self, first: int) -> Iterator[tuple[int, Array]]:
        """Yield the frames from this one on, in blocks with their numbers."""
        for begin, frames in list(self._blocks):
            skipped = max(0, first - begin)
            count = frames.shape[self._axis]
            if skipped < count:
                yield begin + skipped, frames_at(frames, self._axis, skipped, count)

    def clear(self) -> None:
        """Forget all blocks: a new epoch begins."""
        self.has_checkpoint = False
        self._blocks.clear()

    def _end(self, first: int, frames: Array) -> int:
        return first + frames.shape[self._axis]
