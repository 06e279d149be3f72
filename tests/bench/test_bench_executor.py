"""The bench of the executor measures what it says."""

import threading
import time

import anyio
import pytest
import soundfile

from bench.executor import LOOPS, memory, overhead, sparse_file
from bench.hop import bare_hop_us


def test_a_row():
    row = overhead("denoiser", "saturated", "asyncio", "idle", 0.05)
    assert 0 < row.model_us < row.total_p50_us <= row.total_p99_us
    assert row.loop_us > 0


@pytest.mark.parametrize("loop", LOOPS)
def test_a_bare_hop(loop):
    threads, begun_s = set(threading.enumerate()), time.perf_counter()
    found_us = anyio.run(bare_hop_us, 5, 0.001, backend=loop)
    took_us = (time.perf_counter() - begun_s) * 1e6
    assert 0 < 3 * found_us < took_us, "three of five take as long as the median, or longer"
    assert set(threading.enumerate()) <= threads


def test_a_bare_hop_that_is_cancelled():
    async def cancelled() -> bool:
        with anyio.move_on_after(0.05) as scope:
            await bare_hop_us(1000, 0.01)
        return scope.cancelled_caught

    threads = set(threading.enumerate())
    assert anyio.run(cancelled)
    assert set(threading.enumerate()) <= threads


def test_a_sparse_file_is_a_sound(tmp_path):
    sparse_file(tmp_path / "in.wav", 3)
    info = soundfile.info(tmp_path / "in.wav")
    assert (info.frames, info.samplerate, info.channels) == (3 * 60 * 16_000, 16_000, 1)


@pytest.mark.slow
def test_an_hour_takes_the_memory_of_a_minute():
    (minute, _), (hour, _) = memory(1), memory(60)
    assert hour < minute + 8, f"{minute:.0f} and {hour:.0f} MiB"
