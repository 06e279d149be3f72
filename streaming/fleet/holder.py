"""CheckpointHolder: checkpoints of streams in memory, for workers of other machines."""

import time
from math import inf
from typing import Literal

from pulse.errors import InputError
from pulse.support.record import record
from streaming.fleet.fleet_table import FleetTable

SaveOutcome = Literal["saved", "newer", "full"]


@record
class HolderStatus:
    """The checkpoints of a holder, its counts since it started, and the number of its table."""

    checkpoints: int
    held_bytes: int
    saves: int
    saved_bytes: int
    loads: int
    table: int


@record
class _StoredCheckpoint:
    generation: int
    data: bytes
    expires_s: float


class CheckpointHolder:
    """Holds the newest checkpoint of each stream, and the table of the fleet.

    limit_bytes  the limit of all checkpoints together
    """

    def __init__(self, limit_bytes: int) -> None:
        if not limit_bytes > 0:
            raise InputError(f"limit_bytes = {limit_bytes}: must be above 0")
        self._limit_bytes = limit_bytes
        self._checkpoints: dict[str, _StoredCheckpoint] = {}
        self._next_expiry_s = inf
        self._bytes = 0
        self._saves = self._saved_bytes = self._loads = 0
        self._table = FleetTable()

    def save(self, name: str, generation: int, data: bytes, keep_s: float) -> SaveOutcome:
        """Replace the checkpoint of a stream.

        generation  how many times the stream has moved; an older generation does not replace a newer one
        keep_s      seconds that the checkpoint is kept if it is not saved again
        """
        stored = self._checkpoints.get(name)
        if stored is not None and stored.generation > generation:
            return "newer"
        if self._bytes_with(name, data) > self._limit_bytes:
            self.sweep()
            if self._bytes_with(name, data) > self._limit_bytes:
                return "full"
        self.remove(name)
        expires_s = time.monotonic() + keep_s
        self._checkpoints[name] = _StoredCheckpoint(generation, data, expires_s)
        self._next_expiry_s = min(self._next_expiry_s, expires_s)
        self._bytes += len(data)
        self._saves += 1
        self._saved_bytes += len(data)
        return "saved"

    def load(self, name: str) -> tuple[int, bytes] | None:
        """Return the generation and the checkpoint of a stream, and count the call; None if there is none."""
        self._loads += 1
        entry = self._checkpoints.get(name)
        return None if entry is None else (entry.generation, entry.data)

    def remove(self, name: str) -> None:
        """Remove the checkpoint of a stream."""
        entry = self._checkpoints.pop(name, None)
        self._bytes -= 0 if entry is None else len(entry.data)

    def sweep(self) -> int:
        """Remove expired checkpoints. Returns how many."""
        now_s = time.monotonic()
        if now_s <= self._next_expiry_s:
            return 0
        expired = [name for name, stored in self._checkpoints.items() if stored.expires_s < now_s]
        for name in expired:
            self.remove(name)
        self._next_expiry_s = min((stored.expires_s for stored in self._checkpoints.values()), default=inf)
        return len(expired)

    def status(self) -> HolderStatus:
        """Return the checkpoints that have not expired, and the counts."""
        self.sweep()
        return HolderStatus(
            len(self._checkpoints),
            self._bytes,
            self._saves,
            self._saved_bytes,
            self._loads,
            self._table.number,
        )

    def set_table(self, table: FleetTable) -> None:
        """Keep a new table of the fleet, for a control that restarts; one older than the present one is ignored."""
        if table.number > self._table.number:
            self._table = table

    def table(self) -> FleetTable:
        """Return the newest table."""
        return self._table

    def _bytes_with(self, name: str, data: bytes) -> int:
        stored = self._checkpoints.get(name)
        return self._bytes + len(data) - (0 if stored is None else len(stored.data))
