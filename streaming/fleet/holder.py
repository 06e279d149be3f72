"""Holder: checkpoints of streams in memory, for workers of other machines."""

import time
from typing import Literal

from pulse.errors import InputError
from pulse.support.record import record
from pulse.support.wording import count_of

Saved = Literal["saved", "newer", "full"]


@record
class HolderStatus:
    """The checkpoints of a holder, and its counts since it started."""

    checkpoints: int
    held_bytes: int
    saves: int
    saved_bytes: int
    loads: int


class _Held:
    def __init__(self, generation: int, data: bytes, at_s: float) -> None:
        self.generation, self.data, self.at_s = generation, data, at_s


class Holder:
    """Holds the newest checkpoint of each stream.

    keep_s       seconds that a checkpoint is kept if it is not saved again
    limit_bytes  the limit of all checkpoints together
    """

    def __init__(self, keep_s: float, limit_bytes: int) -> None:
        if not keep_s > 0 or not limit_bytes > 0:
            raise InputError(
                f"a holder of {count_of(limit_bytes, 'byte')} for {keep_s:g} s holds nothing; both must be positive"
            )
        self._keep_s, self._limit_bytes = keep_s, limit_bytes
        self._checkpoints: dict[str, _Held] = {}
        self._bytes = 0
        self._saves = self._saved_bytes = self._loads = 0

    def save(self, name: str, generation: int, data: bytes) -> Saved:
        """Replace the checkpoint of a stream.

        generation  how many times the stream has moved; an older generation does not replace a newer one
        """
        stored = self._checkpoints.get(name)
        if stored is not None and stored.generation > generation:
            return "newer"
        if self._bytes_with(name, data) > self._limit_bytes:
            self.sweep()
            if self._bytes_with(name, data) > self._limit_bytes:
                return "full"
        self.remove(name)
        self._checkpoints[name] = _Held(generation, data, time.monotonic())
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
        """Remove expired checkpoints, which are in the order of saving. Returns how many."""
        oldest_s, count = time.monotonic() - self._keep_s, 0
        while (
            self._checkpoints
            and (first := next(iter(self._checkpoints)))
            and self._checkpoints[first].at_s < oldest_s
        ):
            self.remove(first)
            count += 1
        return count

    def status(self) -> HolderStatus:
        """Return the holder's checkpoints and counts."""
        return HolderStatus(len(self._checkpoints), self._bytes, self._saves, self._saved_bytes, self._loads)

    def _bytes_with(self, name: str, data: bytes) -> int:
        stored = self._checkpoints.get(name)
        return self._bytes + len(data) - (0 if stored is None else len(stored.data))
