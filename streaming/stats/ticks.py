"""The intervals at which a live run reports."""

from math import floor, isfinite

from pulse.errors import InputError
from pulse.support.record import record

EARLY = 0.05
"""A look that comes by this part of an interval too early still ends it."""


@record
class Ticks:
    """Intervals of ``interval_s`` seconds since the start; they can be read at any time.

    Raises  InputError: no positive time
    """

    interval_s: float = 1.0

    def __post_init__(self) -> None:
        if not (isfinite(self.interval_s) and self.interval_s > 0):
            raise InputError(f"an interval of {self.interval_s} s; give more than 0 seconds")

    def is_due(self, before_s: float, now_s: float) -> bool:
        """Whether an interval ends after the first time and by the second one."""
        return self._number(now_s) > self._number(before_s)

    def _number(self, elapsed_s: float) -> int:
        return floor(elapsed_s / self.interval_s + EARLY)
