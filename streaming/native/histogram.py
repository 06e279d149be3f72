"""Counting times where nothing may be allocated; ``streaming.latency`` reads the result."""

import numpy as np
from numpy.typing import NDArray

from pulse.jit.pointer import Pointer
from pulse.jit.registry import device
from streaming.latency import BUCKETS, FINE_BITS, Latency

TOTAL, LONGEST, COUNTS = 0, 1, 2
"""Words of a histogram: the sum and the longest, both ns; then the buckets."""
HISTOGRAM_FIELDS = COUNTS + BUCKETS


@device
def record(histogram: Pointer, ns: int) -> None:
    """Count a time."""
    ns = max(ns, 0)
    shift, rest = 0, ns >> (FINE_BITS + 1)
    while rest > 0:
        shift += 1
        rest >>= 1
    place = min((shift << FINE_BITS) + (ns >> shift), BUCKETS - 1) if shift > 0 else ns
    histogram[COUNTS + place] = histogram[COUNTS + place] + 1
    histogram[TOTAL] = histogram[TOTAL] + ns
    histogram[LONGEST] = max(histogram[LONGEST], ns)


def new_histogram() -> NDArray[np.int64]:
    """The words of one that is empty."""
    return np.zeros(HISTOGRAM_FIELDS, np.int64)


def latency_of(histogram: NDArray[np.int64], deadline_s: float | None = None, missed: int = 0) -> Latency:
    """What has been counted so far, a copy."""
    words = histogram.copy()
    return Latency.of_counts(words[COUNTS:], int(words[TOTAL]), int(words[LONGEST]), missed, deadline_s)
