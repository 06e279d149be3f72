"""ResendBuffer: the frames of an input that a server may still lose."""

from collections import deque
from collections.abc import Iterator

from pulse.facts import Array
from pulse.ops.clock import frames_at
from streaming.wire.ports import WirePort


class ResendBuffer:
    """Blocks of one input by the number of their first frame, until a checkpoint has them."""

    def __init__(self, port: WirePort) -> None:
        self._axis = port.axis or 0
        self.has_checkpoint = False
        """Whether a server has said that frames are safe."""
        self._blocks: deque[tuple[int, Array]] = deque()

    def add(self, first: int, frames: Array) -> None:
        """The next block; it is copied."""
        self._blocks.append((first, frames.copy()))

    def forget(self, first: int) -> None:
        """All frames before this one are safe."""
        self.has_checkpoint = self.has_checkpoint or first > 0
        while self._blocks and self._end(*self._blocks[0]) <= first:
            self._blocks.popleft()

    def since(self, first: int) -> Iterator[tuple[int, Array]]:
        """The frames from this one on, in blocks with their numbers."""
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
