"""StreamSaving: the checkpoints of a connection's stream."""

import logging
from collections.abc import Callable

import anyio
import anyio.to_thread

from pulse.support.not_copyable import NotCopyable
from streaming.protocol.errors import ProtocolError
from streaming.protocol.messages import Hello
from streaming.serve.checkpoints import Checkpoint
from streaming.serve.counts import ServerCounts
from streaming.serve.lanes.lane_stream import Answer, OutgoingMessage
from streaming.serve.open_stream import OpenStream
from streaming.serve.placement import CheckpointStore, Placement
from streaming.serve.unconfirmed import Unconfirmed

logger = logging.getLogger("pulse.serve")


class StreamSaving(NotCopyable, reason="it saves a stream of a connection"):
    """Names, loads, saves and removes the checkpoints of one stream.

    A checkpoint that cannot be saved does not end the stream: it continues, and the next one is tried.

    name       the stream's name in the store; empty before ``open``
    placement  the placement of streams in a fleet
    id         the connection's id, for the log
    """

    def __init__(
        self, store: CheckpointStore, placement: Placement | None, counts: ServerCounts, id: str
    ) -> None:
        self.name = ""
        self._store, self._placement, self._counts, self._id = store, placement, counts, id
        self._generation = 0
        self._unsaved: Checkpoint | None = None
        self._unconfirmed = Unconfirmed(confirms=False)
        self._to_save = anyio.Event()
        self._has_store_error = False

    async def open(self, model: str, hello: Hello) -> Checkpoint | None:
        """Name the stream. Returns the checkpoint from which it continues; None for a new stream.

        Raises  ProtocolError: another server has the stream, or there is no checkpoint of this model
        """
        if self._placement is None:
            self.name = self._store.new_name()
        else:
            self.name = self._placement.claim(hello.resume or hello.stream, hello.follows)
        checkpoint = None
        if hello.resume is not None:
            checkpoint, generation = await anyio.to_thread.run_sync(self._store.load, hello.resume)
            if checkpoint.model != model:
                raise ProtocolError(
                    "resume", f"the checkpoint is of {checkpoint.model}, not of {model}", "give its model"
                )
            self.name, self._generation = hello.resume, generation + 1
        elif hello.stream is not None:
            self._generation = 1  # a named stream may have an older checkpoint
        self._unconfirmed = Unconfirmed(hello.confirms, checkpoint)
        return checkpoint

    def add(self, answer: Answer) -> None:
        """Keep the outputs of an answer, and save its checkpoint, if it has one."""
        self._unconfirmed.add(answer.epoch, answer.messages)
        if answer.checkpoint is not None:
            self._unsaved = self._unconfirmed.complete(answer.checkpoint)
            self._to_save.set()

    def confirm(self, epoch: int, saved: tuple[int, ...]) -> None:
        """Record that the client has all outputs before a checkpoint."""
        self._unconfirmed.confirm(epoch, saved)

    async def run(self, stream: OpenStream, push: Callable[[OutgoingMessage], None]) -> None:
        """Keep saving the newest checkpoint and telling the client; an old one is saved again before it expires."""
        last: Checkpoint | None = None
        while True:
            checkpoint = await self._next_checkpoint() or last
            if checkpoint is None or not await self._save(checkpoint):
                continue
            if checkpoint is not last:
                for ack in stream.record_saved(checkpoint):
                    push(ack)
            last = checkpoint

    async def remove(self) -> None:
        """Remove the checkpoints of the stream; those that cannot be removed expire."""
        try:
            await anyio.to_thread.run_sync(self._store.remove, self.name)
        except OSError as error:
            self._record_store_error(error)

    async def _next_checkpoint(self) -> Checkpoint | None:
        """Wait for a checkpoint; None after a third of the time that one is kept."""
        if self._unsaved is None:
            self._to_save = anyio.Event()
            with anyio.move_on_after(self._store.keep_s / 3):
                await self._to_save.wait()
        checkpoint, self._unsaved = self._unsaved, None
        return checkpoint

    async def _save(self, checkpoint: Checkpoint) -> bool:
        """Save a checkpoint. Returns whether it is safe."""
        try:
            is_safe = await anyio.to_thread.run_sync(
                self._store.save, self.name, self._generation, checkpoint
            )
        except OSError as error:
            self._record_store_error(error)
            return False
        if is_safe:
            self._counts.checkpoints += 1
        else:
            self._counts.checkpoints_refused += 1
        return is_safe

    def _record_store_error(self, error: OSError) -> None:
        """Count an error of the disk, and log the first one of the stream, without the path: names are secrets."""
        self._counts.checkpoints_failed += 1
        if not self._has_store_error:
            self._has_store_error = True
            reason = error.strerror or type(error).__name__
            logger.error("checkpoints of a stream fail: %s", reason, extra={"stream": self._id})
