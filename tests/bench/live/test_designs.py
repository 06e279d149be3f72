"""The designs of ``bench.live`` play each result at its position, count what they drop, and leave nothing behind."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest

import pulse
from bench.live import __main__ as table
from bench.live import event_loop, steal_monitor
from bench.live.design import Outcome, Setup
from bench.live.steal_monitor import StolenTime, merge_spans, monitor_steal_time
from bench.models.amplifier import amplifier
from bench.models.writer import Writer, tensor
from pulse.errors import InputError
from pulse.facts import Array
from tests.noise import normal_noise

LOOPS = [name for name, design in table.DESIGNS.items() if design.__module__ == event_loop.__name__]
"""Those whose device a test can be; the others open one of PortAudio's."""
FRAMES = 16
SECONDS = 0.4


class Device:
    """Calls back every few milliseconds from a thread; block n is n + 1 throughout."""

    def __init__(self, callback: Callable[..., Any]) -> None:
        self.callback = callback
        self.played = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    @property
    def time(self) -> float:
        return time.monotonic()

    def run(self) -> None:
        while not self.ended.wait(0.005):
            recorded = np.full((FRAMES, 1), len(self.played) + 1, np.float32)
            played = np.full_like(recorded, np.nan)
            self.callback(recorded, played, FRAMES, SimpleNamespace(currentTime=self.time - 0.001), None)
            self.played.append(played)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The opened devices; a run lasts until one of them has played some results."""
    opened, wait = [], asyncio.wait

    def open_device(setup, callback):
        opened.append(Device(callback))
        return opened[-1]

    async def wait_longer(tasks, timeout):
        finished, _ = await wait(tasks, timeout=timeout)
        played = opened[-1].played
        while not (finished or (len(played) > 10 and any(block.any() for block in played))):
            finished, _ = await wait(tasks, timeout=0.01)

    monkeypatch.setattr(event_loop, "open_stream", open_device)
    monkeypatch.setattr(asyncio, "wait", wait_longer)
    return opened


@pytest.fixture(scope="module")
def setup() -> Setup:
    network = Writer(0)
    network.add_node("Add", ["x", "x"], ["y"])
    model = network.model("double", [tensor("x", 1, "T")], [tensor("y", 1, "T")])
    return Setup(pulse.stream(model, pulse=FRAMES, backend="numpy"), 0, 8000, FRAMES, SECONDS)


@pytest.mark.parametrize("name", LOOPS)
def test_each_result_is_played_in_its_place(name: str, setup: Setup, devices: list[Any]) -> None:
    with ThreadPoolExecutor(1) as thread:
        outcome = thread.submit(table.DESIGNS[name], setup).result(60)
    (device,) = devices
    assert outcome.blocks == len(device.played) > 10
    silent = 0
    for number, played in enumerate(device.played):
        if played.any():
            np.testing.assert_array_equal(played, 2.0 * number)
        else:
            silent += number >= event_loop.HEADROOM_BLOCKS
    assert outcome.dropped == silent < outcome.blocks - 1
    latency = outcome.latency(StolenTime())
    assert latency.count <= outcome.blocks
    assert latency.percentile_s(50) > 0.001
    assert not device.thread.is_alive()


def test_an_error_of_the_model_ends_the_run(
    setup: Setup, devices: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_broken(*_):
        raise InputError("broken")

    monkeypatch.setattr(event_loop, "warm_up", lambda _: None)
    monkeypatch.setattr(event_loop, "push_block", raise_broken)
    with pytest.raises(InputError, match="broken"):
        event_loop.run_loop(setup)
    assert not devices[0].thread.is_alive()


@pytest.mark.parametrize("load", table.LOADS)
def test_a_load_ends_with_its_context(load: str) -> None:
    before = set(threading.enumerate())
    with table.LOADS[load]():
        added = set(threading.enumerate()) - before
        assert len(added) == {"idle": 0, "computes and collects": 2, "sorts": 1}[load]
    assert set(threading.enumerate()) <= before


def times(*milliseconds: int) -> Array:
    """Start and end of blocks every 100 ms that took these times."""
    return np.array([(100 * n, 100 * n + took) for n, took in enumerate(milliseconds)], np.int64) * 1_000_000


def test_a_row_has_the_outcome_of_a_design() -> None:
    outcome = Outcome(times(1, 2, 12), 0.01, blocks=5, dropped=2, flagged=1)
    nobody_looked = table.cells(outcome, StolenTime())
    assert nobody_looked[3:] == ["12.00", "1", "5", "2", "1", "-", "-", "-", "-"]
    assert len(table.new_table("").columns) == 2 + len(nobody_looked)
    machine = StolenTime(merge_spans([(203_000_000, 211_000_000)]))
    assert table.cells(outcome, machine)[3:] == ["12.00", "1", "5", "2", "1", "8.0", "4.00", "4.00", "0"]
    figures = json.loads(json.dumps(table.figures(outcome, machine)))
    assert figures["latency"]["missed"] == 1
    assert figures["machine"]["latency_without"]["missed"] == 0


def test_overlapping_steal_times_count_once() -> None:
    spans = merge_spans([(50, 60), (10, 20), (15, 30), (30, 31)])
    np.testing.assert_array_equal(spans, [(10, 31), (50, 60)])
    spans_of = np.array([(0, 5), (0, 15), (12, 20), (31, 50), (0, 100), (55, 56), (60, 70)])
    expected = [sum(any(a <= t < b for a, b in spans) for t in range(*times)) for times in spans_of]
    np.testing.assert_array_equal(StolenTime(spans).taken_ns(spans_of), expected)
    np.testing.assert_array_equal(StolenTime(merge_spans([])).taken_ns(spans_of), np.zeros(7))


def test_late_returns_from_sleep_count_as_stolen_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, returns = [0], iter([500_000, 1_250_000, 30_000_000, 600_000])

    def sleep(seconds):
        assert seconds == 0.0005
        now[0] += next(returns)
        if now[0] > 32_000_000:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(steal_monitor, "time", SimpleNamespace(sleep=sleep, monotonic_ns=lambda: now[0]))
    monkeypatch.setattr(steal_monitor, "gc", SimpleNamespace(disable=lambda: None))
    for name in ("sched_setaffinity", "sched_setscheduler"):
        monkeypatch.setattr(steal_monitor.os, name, lambda *_: object)
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert steal_monitor.watch_cpu(0) == [(1_000_000, 1_750_000), (2_250_000, 31_750_000)]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_monitor_sees_more_urgent_work() -> None:
    """A thread of priority 99 holds a processor for 30 ms, as a host would; the machine decides how much is seen."""
    program = (
        "import os, time\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))\n"
        "begun = time.monotonic_ns()\n"
        "while time.monotonic_ns() < begun + 30_000_000: pass\n"
        "print(begun, time.monotonic_ns())\n"
    )
    with monitor_steal_time() as machine:
        process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if machine.spans is None:
        assert "PermissionError" in process.stderr
        pytest.skip("no right to real-time priority")
    start, ended = map(int, process.stdout.split())
    (taken_ms,) = machine.taken_ns(np.array([(start, ended)])) / 1e6
    assert 0 < taken_ms <= (ended - start) / 1e6


def test_the_model_is_causal_and_keeps_the_rate() -> None:
    model = pulse.load(amplifier()).analyse()
    x = normal_noise(1, 1, 960)
    y = model.run(x)["y"]
    assert y.shape == x.shape
    assert 0.1 < y.std() < 10
    np.testing.assert_allclose(model.run(x[..., :480])["y"], y[..., :480], atol=1e-5)
    (port,) = model.declutter().pulsify(pulse=480).outputs
    assert (port.delay, port.rate) == (0, 1)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("jackd") is None, reason="jackd is not installed")
def test_the_bench_runs_against_a_sound_server(tmp_path: Path) -> None:
    figures = Path(tmp_path / "figures.json")
    command = [sys.executable, "-m", "bench.live", "asyncio", "--seconds", "0.5", "--json", str(figures)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "from callback entry to the result" in process.stdout
    rows = json.loads(figures.read_text())["rows"]
    assert [row["load"] for row in rows] == list(table.LOADS)
    assert all(row["blocks"] > 10 for row in rows)
