"""Unconfirmed: the outputs that a client may not have received."""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from streaming.serve.checkpoints import Checkpoint
from streaming.serve.lanes.lane_stream import OutgoingMessage

MAX_KEPT_BYTES = 1 << 22
"""Maximum size of what is kept of one stream; beyond it, the oldest outputs are dropped."""


class Unconfirmed:
    """Messages with outputs since the newest checkpoint that the client has confirmed.

    The connection keeps the order of messages: a client that has received the acknowledgement of a checkpoint has all
    outputs before it. What was sent later may be lost with the connection, so the next checkpoint carries it.

    confirms  whether the client confirms checkpoints; if not, outputs since the previous checkpoint are kept
    resumed   the checkpoint from which the stream continues
    """

    def __init__(self, confirms: bool, resumed: Checkpoint | None = None) -> None:
        self._confirms = confirms
        self._epoch = 0 if resumed is None else resumed.epoch
        self._messages: deque[bytes] = deque(() if resumed is None else resumed.outputs)
        self._bytes = sum(map(len, self._messages))
        self._dropped = 0
        self._checkpoints: deque[tuple[tuple[int, ...], int]] = deque()
        """For each unconfirmed checkpoint: its frames of each input, and the number of messages before it."""

    def add(self, epoch: int, messages: Iterable[OutgoingMessage]) -> None:
        """Keep the outputs of an answer."""
        if epoch != self._epoch:
            self._drop(self._dropped + len(self._messages))
            self._checkpoints.clear()
            self._epoch = epoch
        for message in messages:
            if isinstance(message, bytes):
                self._messages.append(message)
                self._bytes += len(message)
        while self._bytes > MAX_KEPT_BYTES:
            self._drop(self._dropped + 1)

    def complete(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return the checkpoint with the outputs that a client may lack, which are kept until it is confirmed."""
        if not self._confirms and self._checkpoints:
            self._drop(self._checkpoints.pop()[1])
        self._checkpoints.append((checkpoint.received, self._dropped + len(self._messages)))
        return replace(checkpoint, outputs=tuple(self._messages))

    def confirm(self, epoch: int, saved: tuple[int, ...]) -> None:
        """Record that the client has all outputs before a checkpoint.

        saved  frames of each input in it: ``received`` of the checkpoint, ``safe`` in messages
        """
        if epoch != self._epoch or all(frames != saved for frames, _ in self._checkpoints):
            return
        while self._checkpoints:
            confirmed, count = self._checkpoints.popleft()
            self._drop(count)
            if confirmed == saved:
                return

    def _drop(self, count: int) -> None:
        """Forget the messages before this one, counted from the first of all."""
        while self._dropped < count and self._messages:
            self._bytes -= len(self._messages.popleft())
            self._dropped += 1
