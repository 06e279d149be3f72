"""Written statistics of a live run are read back line by line, also after a failure."""

import json
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from pulse.errors import InputError, PulseWarning
from streaming.stats.lines import TIMES, HistogramLine
from streaming.stats.live_statistics import Counters, LiveStatistics
from streaming.stats.reader import read_stats
from streaming.stats.writer import StatsWriter
from tests.sources import ROOT
from tests.streaming.file_size_limit import limit_files
from tests.streaming.stats.simulated_statistics import (
    DELAY,
    SETUP,
    Simulation,
    add_counters,
    lines_of,
    read_quietly,
    write,
)

EVENTS = {1: {"frames_silent": 480, "output_underflows": 2}, 3: {"stalls": 1, "reopened": 1}}
SECONDS = 5


@pytest.fixture(scope="module")
def series() -> list[LiveStatistics]:
    return list(Simulation(slow={1: 20}, notes={3: "opened again"}).series(SECONDS, events=EVENTS))


def as_written(values: dict[str, dict[str, Any] | float]) -> dict[str, dict[str, Any] | float]:
    """Values as JSON, rounded to the written digits."""
    return json.loads(json.dumps(values), parse_float=lambda text: round(float(text), 9))


def test_written_statistics_are_read_back(path: Path, series: list[LiveStatistics]) -> None:
    stats = read_stats(path)
    assert stats.complete
    assert stats.header.setup == SETUP
    assert stats.header.versions["numba"]
    assert as_written(asdict(stats.statistics)) == as_written(series[-1].as_dict())
    assert stats.statistics.notes == ("opened again",)
    for name in TIMES:
        expected = getattr(series[-1], name)
        assert stats.times[name].as_dict() == expected.as_dict()
        assert stats.times[name].bucket_counts() == expected.bucket_counts()


def test_intervals_add_up_to_the_whole(path: Path, series: list[LiveStatistics]) -> None:
    stats = read_stats(path)
    assert [interval.at_s for interval in stats.intervals] == [1, 2, 3, 4, 5]
    whole = Counters()
    for interval in stats.intervals:
        whole = add_counters(whole, interval.new)
    assert whole == stats.statistics.counters
    assert [interval.total.count for interval in stats.intervals] == [100] * SECONDS
    assert [interval.new.frames_silent for interval in stats.intervals] == [0, 480, 0, 0, 0]
    assert [interval.events for interval in stats.intervals] == [(), (), (), ("opened again",), ()]
    assert [interval.delay_s for interval in stats.intervals] == pytest.approx([DELAY.total_s] * SECONDS)


def test_intervals_have_times_of_their_own(path: Path, series: list[LiveStatistics]) -> None:
    stats = read_stats(path)
    for before, now, interval in zip([None, *series], series, stats.intervals):
        alone = now.total if before is None else now.total.difference_from(before.total)
        assert interval.total.p99_us == pytest.approx(alone.summary().p99_us)
        assert interval.total.missed == alone.missed
    assert stats.intervals[1].total.max_us > 20_000 > 5_000 > stats.intervals[2].total.max_us


def test_lines_are_for_other_tools_too(path: Path) -> None:
    header, *intervals, summary = lines_of(path)
    assert (header["line"], header["format"], header["version"]) == ("header", "pulse live statistics", 1)
    assert header["setup"]["delay"]["model_s"] == pytest.approx(0.0099375)
    assert {line["line"] for line in intervals} == {"interval"}
    assert intervals[1]["since_start"]["counters"]["pulses"] == 200
    assert intervals[1]["since_start"]["total"]["p99_us"] > 0
    assert intervals[1]["interval"]["waiting"]["p50_us"] > 0
    assert summary["line"] == "summary"
    assert sum(count for _, count in summary["times"]["total"]["classes"]) == 100 * SECONDS


def test_lines_of_intervals_are_short(path: Path) -> None:
    assert max(len(line) for line in path.read_text().splitlines()[1:-1]) < 5000


def test_frequent_statistics_become_one_line_per_interval(tmp_path: Path) -> None:
    often = list(Simulation(channels=1).series(3, each_s=0.1))
    loud = [
        replace(
            interval,
            elapsed_s=interval.elapsed_s + 0.02 * (-1) ** place,
            levels_in=(0.5 if place == 3 else 0.1,),
        )
        for place, interval in enumerate(often)
    ]
    loud = [replace(interval, load=0.9 if place == 4 else 0.1) for place, interval in enumerate(loud)]
    stats = read_stats(write(tmp_path / "o.jsonl", loud))
    assert [round(interval.at_s) for interval in stats.intervals] == [1, 2, 3]
    assert [interval.levels_in for interval in stats.intervals] == [(0.5,), (0.1,), (0.1,)]
    assert stats.intervals[0].load == pytest.approx(0.1 + 0.8 * 0.14 / 0.98)
    assert stats.intervals[1].load == pytest.approx(0.1)


def test_levels_that_are_not_numbers_are_read_as_none(tmp_path: Path, series: list[LiveStatistics]) -> None:
    stats = read_stats(write(tmp_path / "o.jsonl", [replace(series[0], levels_out=(inf, 0.5))]))
    assert stats.intervals[0].levels_out == (None, 0.5)


def test_a_short_run_has_its_only_interval(tmp_path: Path, series: list[LiveStatistics]) -> None:
    stats = read_stats(write(tmp_path / "o.jsonl", [replace(series[0], elapsed_s=0.3)]))
    assert [(interval.at_s, interval.span_s) for interval in stats.intervals] == [(0.3, 0.3)]
    assert stats.complete


def test_each_update_is_readable_at_once(tmp_path: Path, series: list[LiveStatistics]) -> None:
    path = tmp_path / "o.jsonl"
    writer = StatsWriter(path, SETUP)
    for number, statistics in enumerate(series, 1):
        writer.update(statistics)
        with pytest.warns(
            PulseWarning, match=f"without a summary, at {number}.0 s; the run was killed or still runs"
        ):
            stats = read_stats(path)
        assert not stats.complete
        assert stats.statistics.counters == statistics.counters
        assert stats.statistics.notes == statistics.notes
        assert stats.times.keys() == {"total"}
        assert stats.times["total"].as_dict() == statistics.total.as_dict()
    writer.close()
    writer.close()
    assert read_quietly(path).statistics.counters == series[-1].counters


def test_a_killed_run_has_all_but_its_last_interval(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from streaming.stats.writer import StatsWriter\n"
        "from tests.streaming.stats.simulated_statistics import SETUP, Simulation\n"
        "writer = StatsWriter(Path(sys.argv[1]), SETUP)\n"
        "for statistics in Simulation().series(4): writer.update(statistics)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "o.jsonl"
    killed = subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert read_quietly(path).statistics.elapsed_s == 4


def test_missing_lines_follow_after_a_full_disk(tmp_path: Path, series: list[LiveStatistics]) -> None:
    path = tmp_path / "o.jsonl"
    writer = StatsWriter(path, SETUP)
    writer.update(series[0])
    whole = path.read_bytes()
    with limit_files(len(whole) + 100):
        writer.update(series[1])
        assert "File too large at 2.0 s; the missing intervals follow in one line" in str(writer.problem)
        assert path.read_bytes() == whole
        writer.update(series[2])
        assert path.read_bytes() == whole
    writer.update(series[3])
    writer.close(series[4])
    stats = read_stats(path)
    assert [(interval.at_s, interval.span_s) for interval in stats.intervals] == [(1, 1), (4, 3), (5, 1)]
    assert stats.intervals[1].new.frames_silent == 480
    loudest = max(interval.levels_in[0] for interval in series[1:4])
    assert stats.intervals[1].levels_in[0] == pytest.approx(loudest)


def test_a_file_on_a_full_disk_ends_without_a_summary(tmp_path: Path, series: list[LiveStatistics]) -> None:
    path = tmp_path / "o.jsonl"
    writer = StatsWriter(path, SETUP)
    writer.update(series[0])
    with limit_files(path.stat().st_size + 1):
        writer.close(series[1])
    assert "the file ends without a summary" in str(writer.problem)
    assert read_quietly(path).statistics.elapsed_s == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param(
            "none/o.jsonl",
            r"none/o\.jsonl: cannot be written \(No such file or directory\)",
            id="without a folder",
        ),
        pytest.param("", "is not a file that can be replaced", id="a folder"),
        pytest.param("/dev/full", "is not a file that can be replaced", id="a device"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        StatsWriter(tmp_path / name, SETUP)


def test_a_full_disk_is_refused_at_the_start(tmp_path: Path) -> None:
    with (
        limit_files(10),
        pytest.raises(InputError, match=r"cannot be written \(File too large\)"),
    ):
        StatsWriter(tmp_path / "o.jsonl", SETUP)


def test_an_interval_of_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="an interval of 0 s; give more than 0 seconds"):
        StatsWriter(tmp_path / "o.jsonl", SETUP, 0)


def test_times_come_back_to_the_nanosecond(series: list[LiveStatistics]) -> None:
    latency = series[-1].total
    again = HistogramLine.of(latency).latency(latency.deadline_s)
    assert again.as_dict() == latency.as_dict()
