"""What a server of a fleet knows of the others: where a stream belongs, and where it goes on."""

from collections.abc import Sequence
from typing import Protocol

from streaming.serve.checkpoints import Checkpoint


class Placement(Protocol):
    """The assignment of streams to servers. A single server has none."""

    def claim(self, name: str | None, follows: bool) -> str:
        """The name of a stream that is to be opened here.

        name     that it has; None: the fleet chooses one
        follows  whether the client connects elsewhere if told to
        Raises   MovedError: another server has it. WireError: no stream has such a name
        """
        ...

    def successors(self, name: str) -> Sequence[str]:
        """Addresses at which the stream goes on if this server is lost, the best first."""
        ...


class CheckpointStore(Protocol):
    """A store of checkpoints. Its calls block, so they run in threads.

    keep_s  how long a checkpoint stays if it is not saved again
    """

    @property
    def keep_s(self) -> float: ...

    def new_name(self) -> str:
        """A name that cannot be guessed."""
        ...

    def save(self, name: str, generation: int, checkpoint: Checkpoint) -> bool:
        """Replace the checkpoint of a stream; gives whether it is safe.

        generation  how often the stream has gone on elsewhere. A server that has an older one, and writes late,
                    does not replace what a newer one wrote
        """
        ...

    def load(self, name: str) -> tuple[Checkpoint, int]:
        """The newest of a stream, and its generation. Raises WireError."""
        ...

    def remove(self, name: str) -> None:
        """Forget a stream that has ended."""
        ...

    def sweep(self) -> int:
        """Remove those that are too old; how many."""
        ...
