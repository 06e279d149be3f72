"""Placement: which server of a fleet has a stream, and which ones continue it."""

from collections.abc import Sequence
from typing import Protocol

from streaming.serve.checkpoints import Checkpoint


class Placement(Protocol):
    """The assignment of streams to servers. A single server has none."""

    def claim(self, name: str | None, follows: bool) -> str:
        """Return the name of a stream to be opened here.

        name     its name; None lets the fleet choose one
        follows  whether the client connects to another server on request
        Raises   MovedError: another server has the stream. ProtocolError: not a name of a stream
        """
        ...

    def successors(self, name: str) -> Sequence[str]:
        """Return addresses of servers that continue the stream if this one is lost, best first."""
        ...


class CheckpointStore(Protocol):
    """A store of checkpoints. Its calls block, so they run in threads.

    keep_s  seconds that a checkpoint is kept if it is not saved again
    """

    @property
    def keep_s(self) -> float: ...

    def new_name(self) -> str:
        """Create a name that cannot be guessed."""
        ...

    def save(self, name: str, generation: int, checkpoint: Checkpoint) -> bool:
        """Replace the checkpoint of a stream. Returns whether it is safe.

        generation  how many times the stream has moved to another server: a late write of an older server does not
                    replace the checkpoint of a newer one
        Raises      OSError: it cannot be written
        """
        ...

    def load(self, name: str) -> tuple[Checkpoint, int]:
        """Return the newest checkpoint of a stream, and its generation. Raises ProtocolError: there is none."""
        ...

    def remove(self, name: str) -> None:
        """Remove the checkpoints of a stream that has ended. Raises OSError: a file cannot be removed."""
        ...
