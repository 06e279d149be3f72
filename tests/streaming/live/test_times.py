"""Latencies, deadlines, intervals and load of a run follow its virtual clock."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from pulse.facts import Array
from pulse.jit.codegen.registration import register_with_numba
from pulse.jit.language.address import words_at
from streaming.latency import LatencyHistogram
from streaming.native.callback_signature import (
    INPUT_OVERFLOW,
    INPUT_UNDERFLOW,
    OUTPUT_OVERFLOW,
    OUTPUT_UNDERFLOW,
)
from streaming.native.histogram import Histogram, count_time, histogram_at, latency_of
from streaming.virtual.host import VirtualDevice
from tests.noise import normal_noise
from tests.streaming.live.runs import RATE, runs
from tests.streaming.models import cached_program

register_with_numba()  # of what the functions below call

BLOCK, PULSE = 160, 480
BLOCK_NS = 10_000_000
NS = 1e-9


@njit(nogil=True)
def record_all(histogram_address, times_address, count):
    histogram, times = histogram_at(histogram_address), words_at(times_address)
    for i in range(count):
        count_time(histogram, times[i])


def histogram_of(times_ns: Array | list[int], deadline_s: float | None = None) -> LatencyHistogram:
    """The histogram of ``streaming.latency``."""
    latency = LatencyHistogram(deadline_s)
    for ns in times_ns:
        latency.record_ns(int(ns))
    return latency


def assert_equal_times(times: LatencyHistogram, expected: LatencyHistogram) -> None:
    assert times.bucket_counts() == expected.bucket_counts()
    assert (times.count, times.missed) == (expected.count, expected.missed)
    assert (times.total_ns, times.max_ns) == (expected.total_ns, expected.max_ns)
    assert times.summary() == expected.summary()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.integers(0, 1 << 57) | st.integers(0, 200) | st.integers(0, 57).map(lambda bits: 1 << bits),
        max_size=60,
    )
)
def test_native_histograms_equal_latency(times_ns: list[int]) -> None:
    histogram, times = Histogram.new(), np.array(times_ns, np.int64)
    record_all(histogram.address, times.ctypes.data, len(times))
    assert_equal_times(latency_of(histogram), histogram_of(times_ns))


@pytest.mark.parametrize("compute_ms", [0.4, 5.0, 9.99, 14.0])
@pytest.mark.parametrize("pulse_frames", [BLOCK, PULSE])
def test_latencies_equal_a_simulated_queue(compute_ms: float, pulse_frames: int) -> None:
    """Blocks come late at random, a worker takes one pulse after the other."""
    rng, blocks = np.random.default_rng(1), 300
    late_ns = rng.integers(0, 9_000_000, blocks)
    x = normal_noise(BLOCK, 1)
    with runs(
        cached_program(pulse_frames=pulse_frames), block=BLOCK, compute_s=compute_ms * 1e-3, policy="wait"
    ) as (
        host,
        live,
    ):
        began_ns = host.now_ns()
        for ns in late_ns:
            host.tick(x, late_s=ns * NS)
        statistics, now_ns = live.statistics(), host.now_ns()
    came_ns = began_ns + BLOCK_NS * np.arange(1, blocks + 1) + late_ns
    ratio = pulse_frames // BLOCK
    waiting, total, free_ns = [], [], 0
    compute_ns = round(compute_ms * 1e6)
    for arrived_ns in came_ns[ratio - 1 :: ratio]:
        begun_ns = max(arrived_ns, free_ns)
        free_ns = begun_ns + compute_ns
        if free_ns <= now_ns:
            waiting.append(begun_ns - arrived_ns)
            total.append(free_ns - arrived_ns)
    assert_equal_times(statistics.total, histogram_of(total, statistics.deadline_s))
    assert_equal_times(statistics.waiting, histogram_of(waiting))
    assert_equal_times(statistics.compute, histogram_of([compute_ns] * len(total)))
    assert_equal_times(statistics.interval, histogram_of(np.diff(came_ns)))
    assert statistics.counters.missed == sum(ns > statistics.deadline_s * 1e9 for ns in total)
    assert statistics.callback.max_ns == 0
    assert statistics.callback.count == blocks
    assert statistics.deadline_s == 0.01


def test_load_counts_from_the_last_statistics() -> None:
    with runs(cached_program(), compute_s=0.004) as (host, live):
        host.run(normal_noise(100 * BLOCK, 1))
        assert live.statistics().load == pytest.approx(0.4, rel=0.02)
        host.compute_s = 0.001
        host.run(normal_noise(100 * BLOCK, 1))
        statistics = live.statistics()
        assert statistics.load == pytest.approx(0.1, rel=0.05)
        assert statistics.elapsed_s == pytest.approx(2.0, abs=1e-6)


def test_dropped_pulses_have_no_latency() -> None:
    with runs(cached_program(), policy="drop_oldest") as (host, live):
        host.run(normal_noise(20 * BLOCK, 1))
        host.stall(0.1)
        host.run(normal_noise(20 * BLOCK, 1))
        host.advance(0.001)
        statistics = live.statistics()
    counters = statistics.counters
    assert counters.pulses_dropped > 5
    assert (
        statistics.total.count == statistics.compute.count == counters.pulses == 40 - counters.pulses_dropped
    )
    assert counters.missed == 0


def test_flags_of_the_device_are_counted() -> None:
    x = normal_noise(BLOCK, 1)
    with runs(cached_program()) as (host, live):
        for flags in (
            INPUT_UNDERFLOW,
            INPUT_OVERFLOW | OUTPUT_UNDERFLOW,
            OUTPUT_OVERFLOW,
            OUTPUT_OVERFLOW,
            0,
            16,
        ):
            host.tick(x, flags)
        counters = live.statistics().counters
    assert (counters.input_underflows, counters.input_overflows) == (1, 1)
    assert (counters.output_underflows, counters.output_overflows) == (1, 2)
    assert counters.xruns == 5


@pytest.mark.parametrize("is_separate", [False, True])
def test_the_latency_of_devices_is_part_of_the_delay(is_separate: bool) -> None:
    latencies = {"input_latency_s": 0.012, "output_latency_s": 0.02}
    devices = [VirtualDevice("one", 1, 1 - is_separate, RATE, **latencies)]
    if is_separate:
        devices.append(VirtualDevice("other", 0, 1, RATE, **latencies))
    with runs(cached_program(), device=devices) as (host, live):
        for _ in range(2):
            delay, planned = live.delay, live.pipeline.planned_delay
            assert (delay.device_in_s, delay.device_out_s) == pytest.approx((0.012, 0.02))
            assert delay.total_s == pytest.approx(0.032 + planned.frames / RATE)
            host.run(normal_noise(5 * BLOCK, 1))


def test_statistics_change_no_counter() -> None:
    with runs(cached_program(), compute_s=0.003) as (host, live):
        host.run(normal_noise(10 * BLOCK, 1))
        first, second = live.statistics(), live.statistics()
    assert first.counters == second.counters
    assert first.total.bucket_counts() == second.total.bucket_counts()
    assert second.load == 0.0
    assert second.elapsed_s == first.elapsed_s
