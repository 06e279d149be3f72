"""ReplicaStore: saves a worker's checkpoints in the memory of other nodes."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pulse.errors import InputError
from pulse.support.record import record
from streaming.fleet.membership import Membership
from streaming.fleet.rendezvous import ranking
from streaming.fleet.stream_name import StreamName
from streaming.protocol.errors import ProtocolError
from streaming.serve.checkpoints import Checkpoint, checkpoint_error

SPARE_HOLDERS = 3
"""Holders that a worker asks in addition to those that should have a checkpoint."""
CONCURRENT_HOLDERS = 16
"""Holders that are asked concurrently if those have none."""


class Holders(Protocol):
    """Calls holders on any node."""

    def ask(self, names: Sequence[str], method: str, *arguments: Any) -> Mapping[str, Any]:
        """Call a method of several holders concurrently: name -> result, of those that answer in time."""
        ...


@record
class ReplicaStore:
    """A ``CheckpointStore`` of streaming.serve that uses the holders of a fleet.

    membership  the table of the fleet
    node     the worker's node, whose own memory is the last choice
    holders  the processes that keep checkpoints
    copies   the number of holders that get each checkpoint
    keep_s   seconds that holders keep a checkpoint
    """

    membership: Membership
    node: str
    holders: Holders
    copies: int
    keep_s: float

    def new_name(self) -> str:
        """Create a name that cannot be guessed."""
        return str(StreamName.new(self.membership.version))

    def save(self, name: str, generation: int, checkpoint: Checkpoint) -> bool:
        """Save a checkpoint on other nodes, except holders that are full or lost. Returns whether all copies exist."""
        data = checkpoint.as_bytes()
        waiting, missing = self._rank_holders(name), self.copies
        while missing and waiting:
            batch, waiting = waiting[:missing], waiting[missing:]
            answers = self.holders.ask(batch, "save", name, generation, data, self.keep_s)
            if "newer" in answers.values():
                return False
            missing -= list(answers.values()).count("saved")
        return not missing

    def load(self, name: str) -> tuple[Checkpoint, int]:
        """Return the newest checkpoint of the first holders, or else of others; damaged ones are logged and left out.

        The first holders are those that may have been chosen recently: one is the worker's own node, some may be new or
        were lost for a while. If more holders than that have joined, an older checkpoint may be found; the client
        no longer has its frames and gets the error ``gap``.

        Raises  ProtocolError: there is none, or only damaged ones, or no holder at all
        """
        waiting, holder_count = ranking(name, self._nodes()), self.copies + SPARE_HOLDERS
        if not waiting:
            raise ProtocolError("busy", "the fleet has no checkpoint holder yet", "try again later")
        failure = ProtocolError("resume", "no checkpoint has this name", "begin a new stream")
        while waiting:
            batch, waiting = waiting[:holder_count], waiting[holder_count:]
            answers = self.holders.ask(batch, "load", name)
            versions: list[tuple[Checkpoint, int]] = []
            for generation, data in filter(None, answers.values()):
                try:
                    versions.append((Checkpoint.of_bytes(data), generation))
                except InputError as error:
                    failure = checkpoint_error("is damaged", str(error))
            if versions:
                return max(versions, key=lambda version: (version[1], version[0].epoch, version[0].received))
            holder_count = CONCURRENT_HOLDERS
        raise failure

    def remove(self, name: str) -> None:
        """Remove the checkpoints of a stream. Copies left elsewhere by an earlier ranking expire."""
        self.holders.ask(self._rank_holders(name)[: self.copies], "remove", name)

    def _rank_holders(self, name: str) -> list[str]:
        """Rank the holders for a stream, those of other nodes first."""
        nodes = self._nodes()
        return sorted(ranking(name, nodes), key=lambda name: nodes[name] == self.node)

    def _nodes(self) -> dict[str, str]:
        return {holder.name: holder.node for holder in self.membership.table.holders}
