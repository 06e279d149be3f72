"""The intervals at which a live run reports."""

from math import floor, isfinite

from pulse.errors import InputError
from pulse.support.record import record

EARLY_FRACTION = 0.05
"""A check that is too early by at most this fraction of an interval still ends the interval."""


@record
class Ticks:
    """Intervals of ``interval_s`` seconds since the start, checked at any time.

    Raises  InputError: the time is not positive
    """

    interval_s: float = 1.0

    def __post_init__(self) -> None:
        if not (isfinite(self.interval_s) and self.interval_s > 0):
            raise InputError(f"an interval of {self.interval_s} s; give more than 0 seconds")

    def is_due(self, before_s: float, now_s: float) -> bool:
        """Return whether an interval ends after the first time and not after the second."""
        return self._number(now_s) > self._number(before_s)

    def _number(self, elapsed_s: float) -> int:
        return floor(elapsed_s / self.interval_s + EARLY_FRACTION)
