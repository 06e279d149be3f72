"""TrailingMean: the mean of the last frames."""

from collections import deque
from math import fsum


class TrailingMean:
    """The mean of the last ``frames`` values, or of all if there are fewer; the sum is rounded once."""

    def __init__(self, frames: int) -> None:
        self._last: deque[float] = deque(maxlen=frames)

    def add(self, value: float) -> float:
        """Add a value and return the mean."""
        if self._last.maxlen == 1:
            return value
        self._last.append(value)
        return fsum(self._last) / len(self._last)
