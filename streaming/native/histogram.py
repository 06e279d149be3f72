"""Histograms of times without allocation; ``streaming.latency`` reads the result."""

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.structs import Struct, numbers, struct_at
from pulse.jit.registry import device
from streaming.latency import BUCKET_COUNT, FINE_BITS, LatencyHistogram


class Histogram(Struct):
    """A histogram of times."""

    total_ns: int
    longest_ns: int
    counts: NDArray[np.int64] = numbers(BUCKET_COUNT)


histogram_at = struct_at(Histogram)


@device
def count_time(histogram: Histogram, ns: int) -> None:
    """Count a time."""
    ns = max(ns, 0)
    shift, rest = 0, ns >> (FINE_BITS + 1)
    while rest > 0:
        shift += 1
        rest >>= 1
    bucket = min((shift << FINE_BITS) + (ns >> shift), BUCKET_COUNT - 1) if shift > 0 else ns
    counts = histogram.counts
    counts[bucket] = counts[bucket] + 1
    histogram.total_ns += ns
    histogram.longest_ns = max(histogram.longest_ns, ns)


def latency_of(histogram: Histogram, deadline_s: float | None = None, missed: int = 0) -> LatencyHistogram:
    """Return a copy of the counts so far."""
    copied = Histogram(histogram.words.copy())
    return LatencyHistogram.of_counts(copied.counts, copied.total_ns, copied.longest_ns, missed, deadline_s)
