"""ServerCounts: the counts of a server since it started."""

from collections import Counter
from dataclasses import dataclass, field, fields


@dataclass
class ServerCounts:
    """Counts of events, of all connections together.

    frames_in              frames of clients, those that came twice left out
    messages_out           messages to clients
    held_back              times that a client sent faster than its limit
    streams                streams that have ended
    resumed                streams that began with a checkpoint
    errors_undelivered  clients that were gone before they had the error that ended them
    checkpoints            checkpoints that were saved
    checkpoints_refused    checkpoints that the store refused: it has a newer one, or too few copies
    checkpoints_failed     checkpoints that could not be written or removed
    checkpoints_expired    checkpoints that were removed for their age
    ended                  connections by why they ended: ``left``, ``lost``, ``failed`` or the code of an error
    """

    frames_in: int = 0
    messages_out: int = 0
    held_back: int = 0
    streams: int = 0
    resumed: int = 0
    errors_undelivered: int = 0
    checkpoints: int = 0
    checkpoints_refused: int = 0
    checkpoints_failed: int = 0
    checkpoints_expired: int = 0
    ended: Counter[str] = field(default_factory=Counter[str])

    def by_name(self) -> dict[str, int]:
        """Return the counts by their names, without ``ended``."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "ended"}

    def as_dict(self) -> dict[str, int]:
        """Return all counts for JSON; those of ``ended`` as ``ended_…``."""
        return {**self.by_name(), **{f"ended_{reason}": self.ended[reason] for reason in sorted(self.ended)}}
