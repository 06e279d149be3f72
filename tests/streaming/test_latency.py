"""The percentiles of the latency histogram equal numpy's to 1.6 %."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.latency import BUCKET_COUNT, LatencyHistogram

TIMES_NS = st.lists(st.integers(0, 10**13), min_size=1, max_size=60)


def latency_of(times: list[int], deadline_s: float | None = None) -> LatencyHistogram:
    latency = LatencyHistogram(deadline_s)
    for ns in times:
        latency.record_ns(ns)
    return latency


@given(TIMES_NS, st.sampled_from([50, 90, 99, 99.9, 100]))
def test_percentiles_agree_with_sorted_times(times: list[int], percent: float) -> None:
    exact = np.percentile(times, percent, method="inverted_cdf")
    percentile_ns = latency_of(times).percentile_s(percent) * 1e9
    assert exact <= percentile_ns + 1e-3
    assert percentile_ns <= exact * (1 + 1 / 64) + 1


@given(TIMES_NS)
def test_max_mean_and_count_are_exact(times: list[int]) -> None:
    summary = latency_of(times).summary()
    assert summary.count == len(times)
    assert summary.max_us == pytest.approx(max(times) / 1e3)
    assert summary.mean_us == pytest.approx(np.mean(times) / 1e3)
    assert summary.p999_us <= summary.max_us


@given(TIMES_NS)
def test_the_histogram_counts_each_time_once(times: list[int]) -> None:
    rows = latency_of(times).histogram(7)
    assert len(rows) == 7
    assert sum(row.count for row in rows) == len(times)
    assert all(row.from_s <= row.to_s for row in rows)


@given(TIMES_NS, TIMES_NS)
def test_merging_equals_recording_all_times(first: list[int], second: list[int]) -> None:
    merged = latency_of(first, 1e-3)
    merged.merge(latency_of(second, 1e-3))
    assert merged.as_dict() == latency_of(first + second, 1e-3).as_dict()


def test_only_times_beyond_the_deadline_are_missed() -> None:
    assert latency_of([9_999_999, 10_000_000, 10_000_001], 0.01).summary().missed == 1


def test_a_negative_time_counts_as_0() -> None:
    """Times of two clocks may be out of order; compiled code counts them so, too."""
    summary = latency_of([-1_000_000]).summary()
    assert (summary.count, summary.mean_us, summary.max_us) == (1, 0, 0)
    assert latency_of([-1_000_000, 0]).bucket_counts() == [(0, 2)]


def test_without_a_deadline_misses_are_not_counted() -> None:
    assert latency_of([10**12]).summary().missed is None


def test_without_records_all_counts_are_zero() -> None:
    latency = LatencyHistogram(0.01)
    assert latency.histogram() == []
    assert latency.as_dict()["p99_us"] == 0
    assert latency.as_dict()["missed"] == 0


def test_a_time_beyond_the_range_is_counted() -> None:
    latency = latency_of([10**18])
    assert latency.count == 1
    assert latency.max_s == 1e9
    latency.clear()
    assert latency.count == 0


@given(TIMES_NS)
def test_counts_from_elsewhere_give_the_same_statistics(times: list[int]) -> None:
    latency = latency_of(times, 1e-3)
    counts = np.zeros(BUCKET_COUNT, np.int64)
    for ns in times:
        counts += np.array(latency_of([ns]).counts)
    assert (
        LatencyHistogram.of_counts(counts, sum(times), max(times), latency.missed, 1e-3).as_dict()
        == latency.as_dict()
    )


def test_counts_of_other_buckets_are_refused() -> None:
    with pytest.raises(ValueError, match="there are 2624 buckets"):
        LatencyHistogram.of_counts(np.zeros(7, np.int64), 0, 0, 0)


@given(TIMES_NS)
def test_bucket_counts_hold_all_times(times: list[int]) -> None:
    latency = latency_of(times, 1e-3)
    bucket_counts = latency.bucket_counts()
    assert sum(count for _, count in bucket_counts) == len(times)
    assert [ns for ns, _ in bucket_counts] == sorted({ns for ns, _ in bucket_counts})
    again = LatencyHistogram.of_bucket_counts(
        bucket_counts, latency.total_ns, latency.max_ns, latency.missed, 1e-3
    )
    assert again.as_dict() == latency.as_dict()
    assert again.bucket_counts() == bucket_counts


@given(TIMES_NS, TIMES_NS)
def test_a_difference_has_later_times_only(first: list[int], later: list[int]) -> None:
    whole, earlier, alone = latency_of(first + later, 1e-3), latency_of(first, 1e-3), latency_of(later, 1e-3)
    difference = whole.difference_from(earlier)
    assert difference.bucket_counts() == alone.bucket_counts()
    assert (difference.count, difference.missed, difference.total_ns) == (
        alone.count,
        alone.missed,
        alone.total_ns,
    )
    assert alone.max_ns <= difference.max_ns <= min(alone.max_ns * (1 + 1 / 64) + 1, whole.max_ns)
    if max(later) > max(first):
        assert difference.max_ns == max(later)


def test_a_difference_without_new_times_is_empty() -> None:
    latency = latency_of([5, 9])
    assert latency.difference_from(latency_of([5, 9])).as_dict() == latency_of([]).as_dict()
    with pytest.raises(ValueError, match="has counted times that this one has not"):
        latency.difference_from(latency_of([5, 10]))
