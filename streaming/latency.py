"""A latency histogram of constant size."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.support.record import record
from pulse.support.report import duration

FINE_BITS = 6
"""The logarithm to base 2 of the number of buckets per power of two."""
BUCKET_COUNT = 41 << FINE_BITS
"""The number of buckets, up to 2**46 ns (19 hours); longer times count in the last one."""


@record
class BucketRange:
    """A range of adjacent buckets: the number of times from ``from_s`` to ``to_s`` seconds."""

    from_s: float
    to_s: float
    count: int


@record
class LatencySummary:
    """Percentiles of a latency, exact to 1.6 %.

    count        the number of times
    mean_us      their mean
    p50_us, p90_us, p99_us, p999_us  what 50, 90, 99 and 99.9 % of the times do not exceed
    max_us       the exact maximum
    deadline_us  the limit of a time; None if there is none
    missed       times beyond it; None if there is none
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

    def percentiles(self) -> dict[str, float]:
        """Return the percentiles and the maximum in microseconds, by name."""
        return {
            "p50": self.p50_us,
            "p90": self.p90_us,
            "p99": self.p99_us,
            "p99.9": self.p999_us,
            "max": self.max_us,
        }

    def text(self) -> str:
        """Return the percentiles in one line."""
        return ", ".join(f"{name} {duration(us / 1e6)}" for name, us in self.percentiles().items())


class LatencyHistogram:
    """A histogram whose buckets are powers of two, each in 64 parts. ``record_ns`` allocates nothing.

    deadline_s  seconds; longer ones are counted as missed
    """

    def __init__(self, deadline_s: float | None = None) -> None:
        self.deadline_s = deadline_s
        self._deadline_ns = float("inf") if deadline_s is None else deadline_s * 1e9
        self.counts = [0] * BUCKET_COUNT
        """The number of times in each bucket."""
        self.clear()

    @classmethod
    def of_counts(
        cls,
        counts: NDArray[np.int64],
        total_ns: int,
        max_ns: int,
        missed: int,
        deadline_s: float | None = None,
    ) -> "LatencyHistogram":
        """Create a histogram from counts taken elsewhere in the same buckets.

        counts  [BUCKET_COUNT]; the sum of all times and the longest, and how many missed the deadline
        """
        if counts.shape != (BUCKET_COUNT,):
            raise ValueError(f"counts {counts.shape}: there are {BUCKET_COUNT} buckets")
        histogram = cls(deadline_s)
        histogram.counts = counts.tolist()
        histogram.count, histogram.missed = int(counts.sum()), missed
        histogram._total_ns, histogram._max_ns = total_ns, max_ns
        return histogram

    @classmethod
    def of_bucket_counts(
        cls,
        bucket_counts: Iterable[tuple[int, int]],
        total_ns: int,
        max_ns: int,
        missed: int,
        deadline_s: float | None,
    ) -> "LatencyHistogram":
        """Create a histogram from the result of ``bucket_counts``, with its sum, maximum and misses."""
        counts = np.zeros(BUCKET_COUNT, np.int64)
        for ns, count in bucket_counts:
            counts[bisect_left(_longest_ns(), ns)] += count
        return cls.of_counts(counts, total_ns, max_ns, missed, deadline_s)

    def clear(self) -> None:
        """Reset all counts."""
        self.counts[:] = [0] * len(self.counts)
        self.count = 0
        self.missed = 0
        self._total_ns = 0
        self._max_ns = 0

    def record_ns(self, ns: int, times: int = 1) -> None:
        """Count a time of ``ns`` nanoseconds, once or several times; a negative one, of two clocks, as 0."""
        ns = max(ns, 0)
        shift = ns.bit_length() - FINE_BITS - 1
        if shift <= 0:
            self.counts[ns] += times
        else:
            bucket = (shift << FINE_BITS) + (ns >> shift)
            self.counts[bucket if bucket < BUCKET_COUNT else BUCKET_COUNT - 1] += times
        self.count += times
        self._total_ns += times * ns
        if ns > self._max_ns:
            self._max_ns = ns
        if ns > self._deadline_ns:
            self.missed += times

    def merge(self, other: "LatencyHistogram") -> None:
        """Add the counts of another; its misses are those of its own deadline."""
        for index, count in enumerate(other.counts):
            self.counts[index] += count
        self.count += other.count
        self.missed += other.missed
        self._total_ns += other._total_ns
        self._max_ns = max(self._max_ns, other._max_ns)

    def difference_from(self, earlier: "LatencyHistogram") -> "LatencyHistogram":
        """Return the counts since ``earlier``, an earlier copy of this histogram.

        The longest time is exact if it is the longest of all, else to 1.6 %.
        """
        counts = np.subtract(self.counts, earlier.counts)
        if counts.min() < 0:
            raise ValueError(
                "the earlier histogram has counted times that this one has not; give a copy of this one"
            )
        longest = 0
        if self._max_ns > earlier._max_ns:
            longest = self._max_ns
        elif counts.any():
            longest = min(_upper_ns(int(np.flatnonzero(counts)[-1])), self._max_ns)
        total_ns, missed = self._total_ns - earlier._total_ns, self.missed - earlier.missed
        return LatencyHistogram.of_counts(counts, total_ns, longest, missed, self.deadline_s)

    def bucket_counts(self) -> list[tuple[int, int]]:
        """Return the longest time (ns) and the count of each bucket that is not empty, in order."""
        return [(_upper_ns(bucket), self.counts[bucket]) for bucket in np.flatnonzero(self.counts).tolist()]

    def percentile_s(self, percent: float) -> float:
        """Return the smallest time that ``percent`` of all times did not exceed, in seconds; 0 if there are none."""
        return self._percentiles_s([percent])[0]

    def _percentiles_s(self, percents: Sequence[float]) -> list[float]:
        if not self.count:
            return [0.0] * len(percents)
        ranks = [max(1, ceil(self.count * percent / 100 - 1e-9)) for percent in percents]
        buckets = np.searchsorted(np.cumsum(self.counts), ranks)
        return [min(_upper_ns(int(bucket)), self._max_ns) / 1e9 for bucket in buckets]

    @property
    def total_ns(self) -> int:
        """The sum of all times in nanoseconds."""
        return self._total_ns

    @property
    def max_ns(self) -> int:
        """The longest time in nanoseconds."""
        return self._max_ns

    @property
    def max_s(self) -> float:
        """The longest time in seconds."""
        return self._max_ns / 1e9

    @property
    def mean_s(self) -> float:
        """The mean time in seconds."""
        return self._total_ns / self.count / 1e9 if self.count else 0.0

    def summary(self) -> LatencySummary:
        """Return the present percentiles."""
        p50, p90, p99, p999 = (seconds * 1e6 for seconds in self._percentiles_s((50, 90, 99, 99.9)))
        deadline = None if self.deadline_s is None else self.deadline_s * 1e6
        missed = None if self.deadline_s is None else self.missed
        return LatencySummary(
            count=self.count,
            mean_us=self.mean_s * 1e6,
            p50_us=p50,
            p90_us=p90,
            p99_us=p99,
            p999_us=p999,
            max_us=self.max_s * 1e6,
            deadline_us=deadline,
            missed=missed,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the summary, for JSON."""
        return asdict(self.summary())

    def histogram(self, rows: int = 16) -> list[BucketRange]:
        """Return the counts of all times in ``rows`` ranges of equal width on a log scale."""
        if not self.count:
            return []
        buckets = [bucket for bucket, count in enumerate(self.counts) if count]
        edges = np.geomspace(max(1, _lower_ns(buckets[0])), _upper_ns(buckets[-1]) + 2, rows + 1)
        counts = [0] * rows
        for bucket in buckets:
            row = int(np.searchsorted(edges, _lower_ns(bucket), "right")) - 1
            counts[min(max(row, 0), rows - 1)] += self.counts[bucket]
        return [
            BucketRange(float(low) / 1e9, float(high) / 1e9, count)
            for low, high, count in zip(edges, edges[1:], counts)
        ]


@cache
def _longest_ns() -> tuple[int, ...]:
    """Return the largest time in each bucket but the last, which has no limit."""
    return tuple(_upper_ns(index) for index in range(BUCKET_COUNT - 1))


def _lower_ns(bucket: int) -> int:
    """Return the lower bound of a bucket."""
    shift = max(0, (bucket >> FINE_BITS) - 1)
    return (bucket - (shift << FINE_BITS)) << shift


def _upper_ns(bucket: int) -> int:
    """Return the largest time in a bucket."""
    shift = max(0, (bucket >> FINE_BITS) - 1)
    return _lower_ns(bucket) + (1 << shift) - 1
