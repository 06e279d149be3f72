"""ServerCounts: the counts of a server since it started."""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any


def _count(meaning: str) -> Any:
    return field(default=0, metadata={"meaning": meaning})


@dataclass
class ServerCounts:
    """Counts of events, of all connections together. ``ended`` has connections by why they ended.

    These are ``left``, ``lost``, ``failed`` or the code of an error.
    """

    frames_in: int = _count("Frames of clients, those that came twice left out")
    messages_out: int = _count("Messages to clients")
    held_back: int = _count("Times that a client sent faster than its limit")
    streams: int = _count("Streams that have ended")
    resumed: int = _count("Streams that began with a checkpoint")
    errors_undelivered: int = _count("Clients that were gone before they had the error that ended them")
    checkpoints: int = _count("Checkpoints that were saved")
    checkpoints_refused: int = _count(
        "Checkpoints that the store refused: it has a newer one, or too few copies"
    )
    checkpoints_failed: int = _count("Checkpoints that could not be written or removed")
    checkpoints_expired: int = _count("Checkpoints that were removed for their age")
    ended: Counter[str] = field(default_factory=Counter[str])

    def by_name(self) -> dict[str, int]:
        """Return the counts by their names, without ``ended``."""
        return {name: getattr(self, name) for name in COUNT_MEANINGS}

    def as_dict(self) -> dict[str, int]:
        """Return all counts for JSON; those of ``ended`` as ``ended_…``."""
        return {**self.by_name(), **{f"ended_{reason}": self.ended[reason] for reason in sorted(self.ended)}}


COUNT_MEANINGS: dict[str, str] = {
    count.name: count.metadata["meaning"] for count in fields(ServerCounts) if count.metadata
}
"""Name of a count -> what it counts."""
