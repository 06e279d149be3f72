"""Scaling: the number of workers that a version needs, by its load."""

from math import ceil

from pulse.support.record import record
from streaming.fleet.deployment import Deployment

WORKERS_WITH_STREAMS = 2
"""Workers of a version without new streams: one for its streams, and one to continue them if that is lost."""
LINGER_S = 15.0
"""The seconds that workers of such a version stay after its last stream, for clients that reconnect."""


@record
class Load:
    """The load of the workers of a version.

    filled   parts of the budget of steps that streams fill, summed over workers
    refused  streams refused for lack of time or lanes since the last observation
    streams  the number of open streams
    """

    filled: float
    refused: int
    streams: int


class Scaling:
    """The number of workers of one version, which increases at once and decreases after a delay."""

    def __init__(self) -> None:
        self._lower_since_s: float | None = None
        self._empty_since_s: float | None = None

    def wanted_workers(self, deployment: Deployment, load: Load, count: int, now_s: float) -> int:
        """Return the number of workers that the version should have.

        count  the present number, starting workers included
        now_s  the time of a monotonic clock
        """
        if deployment.weight == 0:
            return self._wanted_at_end(deployment, load, count, now_s)
        target = ceil(load.filled / deployment.load)
        if load.refused:
            target = max(target, count + 1)
        return self._lower_slowly(
            _clamp(target, deployment.min_workers, deployment.max_workers), deployment, count, now_s
        )

    def _wanted_at_end(self, deployment: Deployment, load: Load, count: int, now_s: float) -> int:
        if load.streams:
            self._empty_since_s = None
            lowest = min(WORKERS_WITH_STREAMS, deployment.max_workers)
            target = _clamp(ceil(load.filled / deployment.load), lowest, max(count, lowest))
            return self._lower_slowly(target, deployment, count, now_s)
        if self._empty_since_s is None:
            self._empty_since_s = now_s
        return 0 if now_s - self._empty_since_s >= LINGER_S else count

    def _lower_slowly(self, target: int, deployment: Deployment, count: int, now_s: float) -> int:
        """Return the target, but lower it only after it was lower for a while, one worker at a time."""
        if target >= count:
            self._lower_since_s = None
            return target
        if self._lower_since_s is None:
            self._lower_since_s = now_s
        if now_s - self._lower_since_s < deployment.down_after_s:
            return count
        self._lower_since_s = now_s
        return count - 1


def _clamp(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)
