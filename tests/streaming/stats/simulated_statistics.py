"""Simulated statistics of a live run: a model of 1.2 ms, with problems on request."""

import json
import warnings
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field
from math import log, sin
from operator import add
from pathlib import Path

from pulse.errors import PulseWarning
from streaming.latency import LatencyHistogram
from streaming.realtime.realtime_settings import RealtimeSetting
from streaming.stats.lines import TIMES
from streaming.stats.live_statistics import Counters, DelayBreakdown, LiveStatistics
from streaming.stats.reader import RecordedRun, read_stats
from streaming.stats.setup import Setup
from streaming.stats.writer import StatsWriter

DEADLINE_S = 0.01
DELAY = DelayBreakdown(0.010, 0.0033125, 0.0012, 0.005, 0.0099375, 0.0126667, 936)
SETUP = Setup(
    model="denoise",
    backend="numba",
    weights="f32",
    pulse_frames=160,
    rate_hz=16000,
    input="USB Audio",
    output="Headphones",
    device_rate_hz=48000,
    block_frames=480,
    channels="mix",
    streams=1,
    engine="worker",
    policy="wait",
    deadline_s=DEADLINE_S,
    delay=DELAY,
    realtime_settings=(
        RealtimeSetting("priority", "70", "normal", "no right to it; raise `ulimit -r`"),
        RealtimeSetting("memory", "locked", "locked"),
    ),
)


def copy(latency: LatencyHistogram) -> LatencyHistogram:
    """A copy of a latency histogram."""
    return LatencyHistogram.of_bucket_counts(
        latency.bucket_counts(), latency.total_ns, latency.max_ns, latency.missed, latency.deadline_s
    )


def add_counters(left: Counters, right: Counters) -> Counters:
    return Counters(*map(add, astuple(left), astuple(right)))


@dataclass
class Simulation:
    """A run in blocks of 10 ms, always the same.

    slow      milliseconds more for every 20th pulse of a second
    notes     the notes from the start of a second on
    """

    slow: dict[int, float] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)
    channels: int = 2

    def series(
        self, seconds: int, each_s: float = 1.0, events: dict[int, dict[str, int]] | None = None
    ) -> Iterator[LiveStatistics]:
        """Statistics every ``each_s``; ``events`` adds to counters at the start of a second."""
        times = {name: LatencyHistogram(DEADLINE_S if name == "total" else None) for name in TIMES}
        added = Counters()
        notes: tuple[str, ...] = ()
        per = round(each_s * 100)
        for number in range(round(seconds / each_s)):
            first = number * per
            second, begins = first // 100, first % 100 == 0
            for pulse in range(first, first + per):
                for name, ms in self._times_ms(pulse, self.slow.get(second, 0.0)).items():
                    times[name].record_ns(int(ms * 1e6))
            if begins:
                added = add_counters(added, Counters(**(events or {}).get(second, {})))
                notes += (self.notes[second],) if second in self.notes else ()
            pulses = first + per
            regular = Counters(pulses, pulses, 480 * pulses, 0, 480 * pulses, missed=times["total"].missed)
            swell = [0.5 + 0.4 * sin(second / 3 + channel) for channel in range(self.channels)]
            yield LiveStatistics(
                (number + 1) * each_s,
                add_counters(regular, added),
                DELAY,
                DEADLINE_S,
                *(copy(times[name]) for name in TIMES),
                levels_in=tuple(swell),
                levels_out=tuple(0.3 * level for level in swell),
                load=0.12,
                notes=notes,
            )

    def _times_ms(self, pulse: int, slow_ms: float) -> dict[str, float]:
        """The times of one pulse: uniform numbers from the golden ratio spread them."""
        some, other, third = ((pulse + 1) * ratio % 1 for ratio in (0.6180339887, 0.7548776662, 0.5698402910))
        waiting = -0.05 * log(1 - some) + (slow_ms if pulse % 20 == 7 else 0.0)
        compute = 1.1 + 0.2 * other - 0.03 * log(1 - third)
        return {
            "total": waiting + compute,
            "waiting": waiting,
            "compute": compute,
            "callback": 0.005 + 0.02 * third,
            "interval": 9.9 + 0.2 * some,
        }


def write(path: Path, series: list[LiveStatistics], setup: Setup = SETUP, end: bool = True) -> Path:
    """A file of these statistics."""
    stats = StatsWriter(path, setup)
    statistics = None
    for statistics in series:
        stats.update(statistics)
    stats.close(statistics if end else None)
    assert stats.problem is None
    return path


def lines_of(path: Path) -> list[dict[str, float | str]]:
    """The objects in the lines of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_quietly(path: Path) -> RecordedRun:
    """The statistics of a run that may have been killed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PulseWarning)
        return read_stats(path)
