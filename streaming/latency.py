"""How long steps take: a histogram of constant size."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

_FINE_BITS = 6
_ROWS = 40
"""Up to 2**46 ns, 19 hours; longer ones count as that."""
_LAST = (_ROWS + 1) * (1 << _FINE_BITS) - 1


@dataclass(frozen=True)
class LatencySummary:
    """Percentiles of a latency in microseconds, exact to 1.6 %; ``max_us`` is exact.

    missed  how many took longer than the deadline; None without one
    """

    count: int
    mean_us: float
    p50_us: float
    p90_us: float
    p99_us: float
    p999_us: float
    max_us: float
    deadline_us: float | None
    missed: int | None

    def as_dict(self) -> dict[str, Any]:
        """The same, for JSON."""
        return asdict(self)


class Latency:
    """A histogram whose buckets are powers of two, each in 64 parts. ``record_ns`` allocates nothing.

    deadline_s  seconds; longer ones are counted as missed
    """

    def __init__(self, deadline_s: float | None = None) -> None:
        self.deadline_s = deadline_s
        self._deadline_ns = float("inf") if deadline_s is None else deadline_s * 1e9
        self._counts = [0] * (_LAST + 1)
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self._counts[:] = [0] * len(self._counts)
        self.count = 0
        self.missed = 0
        self._total_ns = 0
        self._max_ns = 0

    def record_ns(self, ns: int) -> None:
        """Count one that took ``ns`` nanoseconds."""
        shift = ns.bit_length() - _FINE_BITS - 1
        if shift <= 0:
            self._counts[ns if ns > 0 else 0] += 1
        else:
            place = (shift << _FINE_BITS) + (ns >> shift)
            self._counts[place if place < _LAST else _LAST] += 1
        self.count += 1
        self._total_ns += ns
        if ns > self._max_ns:
            self._max_ns = ns
        if ns > self._deadline_ns:
            self.missed += 1

    def merge(self, other: "Latency") -> None:
        """Add what another has counted, against its own deadline."""
        for place, count in enumerate(other._counts):
            self._counts[place] += count
        self.count += other.count
        self.missed += other.missed
        self._total_ns += other._total_ns
        self._max_ns = max(self._max_ns, other._max_ns)

    def percentile_s(self, percent: float) -> float:
        """The smallest time that ``percent`` of all did not exceed, in seconds; 0 where there are none."""
        if not self.count:
            return 0.0
        wanted = max(1, int(np.ceil(self.count * percent / 100 - 1e-9)))
        place = int(np.searchsorted(np.cumsum(self._counts), wanted))
        return min(_upper_ns(place), self._max_ns) / 1e9

    @property
    def max_s(self) -> float:
        """The longest, in seconds."""
        return self._max_ns / 1e9

    @property
    def mean_s(self) -> float:
        """The mean, in seconds."""
        return self._total_ns / self.count / 1e9 if self.count else 0.0

    def summary(self) -> LatencySummary:
        """The percentiles as they are now."""
        p50, p90, p99, p999 = (self.percentile_s(percent) * 1e6 for percent in (50, 90, 99, 99.9))
        deadline = None if self.deadline_s is None else self.deadline_s * 1e6
        missed = None if self.deadline_s is None else self.missed
        return LatencySummary(
            self.count, self.mean_s * 1e6, p50, p90, p99, p999, self.max_s * 1e6, deadline, missed
        )

    def as_dict(self) -> dict[str, Any]:
        """The summary, for JSON."""
        return self.summary().as_dict()

    def histogram(self, rows: int = 16) -> list[tuple[float, float, int]]:
        """From, to (seconds) and count of ``rows`` classes of equal width on a log scale, over all times."""
        if not self.count:
            return []
        used = [place for place, count in enumerate(self._counts) if count]
        edges = np.geomspace(max(1, _lower_ns(used[0])), _upper_ns(used[-1]) + 2, rows + 1)
        counts = [0] * rows
        for place in used:
            row = int(np.searchsorted(edges, _lower_ns(place), "right")) - 1
            counts[min(max(row, 0), rows - 1)] += self._counts[place]
        return [
            (float(low) / 1e9, float(high) / 1e9, count) for low, high, count in zip(edges, edges[1:], counts)
        ]


def _lower_ns(place: int) -> int:
    """The least time in a bucket."""
    shift = max(0, (place >> _FINE_BITS) - 1)
    return (place - (shift << _FINE_BITS)) << shift


def _upper_ns(place: int) -> int:
    """The largest time in a bucket."""
    shift = max(0, (place >> _FINE_BITS) - 1)
    return _lower_ns(place) + (1 << shift) - 1
