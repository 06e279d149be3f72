"""The measurements of the executor's bench."""

import threading
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
import soundfile

from bench.executor.long_file import peak_memory, sparse_file
from bench.executor.overhead import LOOPS, overhead
from bench.executor.thread_hop import bare_hop_us
from pulse.jit.events import NativeEvent


def test_a_row_has_the_model_within_the_total() -> None:
    row = overhead("denoiser", "saturated", "asyncio", "idle", 0.05)
    assert 0 < row.model_us < row.total_p50_us <= row.total_p99_us
    assert row.loop_us > 0


@pytest.mark.parametrize("loop", LOOPS)
def test_a_bare_hop_is_the_median_of_two_wakes(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hop lasts from the request to the thread until its answer; the time between hops is left out."""
    steps = [("clock", None), ("set", True), ("set", False), ("wait", True), ("clock", None)]
    us, steps_seen, here = [5, 1, 3, 9, 2], [], threading.current_thread()
    times_ns = iter(
        [edge for turn, step_us in enumerate(us) for edge in (10**9 * turn, 10**9 * turn + 1000 * step_us)]
    )
    set_event, wait = NativeEvent.set, NativeEvent.wait

    def read_ns():
        steps_seen.append(("clock", None))
        return next(times_ns)

    def noted_set(event):
        steps_seen.append(("set", threading.current_thread() is here))
        set_event(event)

    def noted_wait(event):
        wait(event)
        if threading.current_thread() is here:
            steps_seen.append(("wait", True))

    monkeypatch.setattr("bench.executor.thread_hop.time", SimpleNamespace(perf_counter_ns=read_ns))
    monkeypatch.setattr(NativeEvent, "set", noted_set)
    monkeypatch.setattr(NativeEvent, "wait", noted_wait)
    threads = set(threading.enumerate())
    assert anyio.run(bare_hop_us, len(us), 0.001, backend=loop) == 3
    assert steps_seen == steps * len(us) + [("set", True)], "the last one ends the thread"
    assert set(threading.enumerate()) <= threads


def test_a_cancelled_bare_hop_ends_its_thread() -> None:
    async def is_cancelled() -> bool:
        with anyio.move_on_after(0.05) as scope:
            await bare_hop_us(1000, 0.01)
        return scope.cancelled_caught

    threads = set(threading.enumerate())
    assert anyio.run(is_cancelled)
    assert set(threading.enumerate()) <= threads


def test_sparse_files_are_read_as_sound(tmp_path: Path) -> None:
    sparse_file(tmp_path / "in.wav", 3)
    info = soundfile.info(tmp_path / "in.wav")
    assert (info.frames, info.samplerate, info.channels) == (3 * 60 * 16_000, 16_000, 1)


@pytest.mark.slow
def test_an_hour_takes_the_memory_of_a_minute() -> None:
    (minute, _), (hour, _) = peak_memory(1), peak_memory(60)
    assert hour < minute + 8, f"{minute:.0f} and {hour:.0f} MiB"
