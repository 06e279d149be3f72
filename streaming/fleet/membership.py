"""Membership: a worker's view of its fleet. The table is replaced when the fleet changes; streams only read it."""

from streaming.fleet.fleet_table import FleetTable, WorkerEntry
from streaming.fleet.rendezvous import ranking, share_of
from streaming.fleet.stream_name import StreamName, new_key
from streaming.protocol.errors import MovedError, ProtocolError

SUCCESSOR_COUNT = 3
"""The number of successors that a client gets."""


class Membership:
    """The placement of streams on workers; a ``Placement`` of streaming.serve.

    worker, version  this worker and its version
    """

    def __init__(self, worker: str, version: str) -> None:
        self.worker, self.version = worker, version
        self.table = FleetTable()

    def claim(self, name: str | None, follows: bool) -> str:
        """Return the name of a stream to be opened here. A client that does not follow is accepted here.

        Raises  MovedError: another worker has the stream. ProtocolError: not a name of a stream
        """
        if name is None:
            key = new_key()
            stream = StreamName(key, self._version_of(key) if follows else self.version)
        else:
            stream = StreamName.of_text(name)
        best = self._rank_workers(stream)
        elsewhere = best and best[0].name != self.worker
        if elsewhere and (follows or stream.version != self.version):
            raise MovedError(str(stream), [worker.url for worker in best[:SUCCESSOR_COUNT]])
        if stream.version != self.version:
            raise ProtocolError(
                "resume", f"version {stream.version} of the models has ended", "begin a new stream"
            )
        return str(stream)

    def successors(self, name: str) -> list[str]:
        """Return the addresses of the workers that continue a stream if this one is lost, best first."""
        ranked = self._rank_workers(StreamName.of_text(name))
        return [worker.url for worker in ranked if worker.name != self.worker][:SUCCESSOR_COUNT]

    def _version_of(self, key: str) -> str:
        """Choose the version of a new stream."""
        left = share_of(key)
        shares = self.table.shares
        for version, share in sorted(shares.items()):
            left -= share
            if left < 0:
                return version
        return max(shares, default=self.version)

    def _rank_workers(self, stream: StreamName) -> list[WorkerEntry]:
        live = {worker.name: worker for worker in self.table.live_workers(stream.version)}
        return [live[name] for name in ranking(stream.key, live)]
