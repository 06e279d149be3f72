"""Read statistics files, with every value checked."""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pulse.errors import InputError, PulseWarning
from pulse.support.record import record
from pulse.support.report import parse_json
from streaming.latency import LatencyHistogram
from streaming.stats.decoding import MisfitError, decoder
from streaming.stats.lines import (
    HEADER,
    INTERVAL,
    LINES_FORMAT,
    LINES_VERSION,
    SUMMARY,
    TIMES,
    HistogramLine,
    IntervalStatistics,
    StatsHeader,
    SummaryLine,
)
from streaming.stats.live_statistics import StatisticsSummary

MAX_LINE_LENGTH = 1 << 20
"""A longer line is refused: lines of statistics are shorter."""
MAX_FILE_BYTES = 1 << 29
"""Maximum size of a file in bytes: about three days at one line per second."""
LINES_PER_REPORT = 1000
"""The number of lines between calls of ``advance``."""
MAX_RUN_S = 3e9
"""Maximum length of a run in seconds: almost a hundred years."""
MAX_COUNT = 1 << 40
"""Maximum count in a line: 350 years of pulses of 10 ms."""
Decoded = TypeVar("Decoded")
MADE_BY = "such files are written by pulse run --live --stats FILE"


@record
class RecordedRun:
    """A run as recorded in a statistics file.

    header      the first line
    intervals   the intervals in order
    statistics  the statistics since the start; without a summary in the file, those of the last line
    times       the histograms; without a summary in the file, ``total`` alone
    complete    whether the file has a summary
    """

    header: StatsHeader
    intervals: tuple[IntervalStatistics, ...]
    statistics: StatisticsSummary
    times: dict[str, LatencyHistogram]
    complete: bool

    @property
    def start_time(self) -> datetime:
        """When the run started."""
        return datetime.fromisoformat(self.header.started)


def read_stats(path: Path, advance: Callable[[int, int], None] | None = None) -> RecordedRun:
    """Read a file of statistics.

    A file that ends within a line, or without a summary, is from a run that was killed or is still in progress: it is
    read up to that point, with a PulseWarning.

    advance  called with the number of bytes read, and the number in total
    Raises   InputError: no such file, broken, empty, too large, or not a statistics file
    """
    try:
        with open(path, "rb") as file:
            return _Reader(path, advance).read(file)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; check the path") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); {MADE_BY}") from error


class _Reader:
    def __init__(self, path: Path, advance: Callable[[int, int], None] | None) -> None:
        self.path, self.advance = path, advance
        self.intervals: list[IntervalStatistics] = []
        self.since_start: Any = None
        self.summary: SummaryLine | None = None
        self.bucket_counts: Counter[int] = Counter()
        self.total_ns = self.max_ns = 0
        self.cut = False

    def read(self, file: BinaryIO) -> RecordedRun:
        lines = self.lines(file)
        header = self.header(next(lines, None))
        deadline_s = header.setup.deadline_s
        line_number = 1
        for line_number, line in lines:
            if self.summary is not None:
                raise InputError(
                    f"{self.path}, line {line_number}: follows the summary; give each run its own file"
                )
            if line.get("line") == INTERVAL:
                self.add_interval(line_number, line)
            elif line.get("line") == SUMMARY:
                self.summary = self.decode(SummaryLine, line, line_number)
            else:
                raise self.damage_error(line_number, "is neither an interval nor a summary")
        if not self.intervals:
            raise InputError(f"{self.path}: holds no measurement; the run ended before its first interval")
        if self.summary is None:
            return self.stats_without_summary(header, line_number)
        missing = [name for name in TIMES if name not in self.summary.times]
        if missing:
            raise self.damage_error(line_number, f"times.{missing[0]} is missing")
        for counted in self.summary.times.values():
            self.require_possible(counted, line_number)
        times = {
            name: counted.latency(deadline_s if name == "total" else None)
            for name, counted in self.summary.times.items()
        }
        return RecordedRun(header, tuple(self.intervals), self.summary.statistics, times, complete=True)

    def lines(self, file: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number of each line, from 1, and its object; an incomplete last line is left out."""
        size = line_number = 0
        whole_size = os.fstat(file.fileno()).st_size
        while raw := file.readline(MAX_LINE_LENGTH):
            size += len(raw)
            line_number += 1
            if size > MAX_FILE_BYTES:
                raise InputError(
                    f"{self.path}: is larger than {MAX_FILE_BYTES >> 20} MiB; take the first line and the last ones: "
                    f"(head -n 1 {self.path}; tail -n 100000 {self.path}) > part.jsonl"
                )
            if self.advance is not None and line_number % LINES_PER_REPORT == 0:
                self.advance(size, whole_size)
            is_complete = raw.endswith(b"\n")
            try:
                values = parse_json(raw)
            except (ValueError, RecursionError) as error:
                if not is_complete and len(raw) < MAX_LINE_LENGTH and line_number > 1:
                    self.cut = True
                    return
                if line_number == 1:
                    raise self.foreign_error() from error
                raise self.damage_error(line_number, f"is not valid JSON ({error})") from error
            if not isinstance(values, dict):
                raise (
                    self.foreign_error()
                    if line_number == 1
                    else self.damage_error(line_number, "is not an object")
                )
            yield line_number, values

    def header(self, first: tuple[int, dict[str, Any]] | None) -> StatsHeader:
        if first is None:
            raise InputError(f"{self.path}: is empty; {MADE_BY}")
        line_number, line = first
        if line.get("format") != LINES_FORMAT or line.get("line") != HEADER:
            raise self.foreign_error()
        if line.get("version") != LINES_VERSION:
            raise InputError(
                f"{self.path}: has version {line.get('version')!r} of the format, this one reads {LINES_VERSION}; "
                "use the pulse that wrote it, or a newer one"
            )
        header = self.decode(StatsHeader, line, line_number)
        setup = header.setup
        for name in ("pulse_frames", "rate_hz", "device_rate_hz", "deadline_s"):
            if not getattr(setup, name) > 0:
                raise self.damage_error(line_number, f"setup.{name} is not more than 0")
        try:
            latest = datetime.fromisoformat(header.started)
            latest += timedelta(seconds=MAX_RUN_S)
        except (ValueError, OverflowError) as error:
            raise self.damage_error(line_number, f"started: {error}") from error
        return header

    def add_interval(self, line_number: int, line: dict[str, Any]) -> None:
        """Keep an interval, and add its histogram of ``total``."""
        interval = self.decode(IntervalStatistics, line.get("interval"), line_number)
        before_s = self.intervals[-1].at_s if self.intervals else 0.0
        if not (interval.span_s > 0 and before_s < interval.at_s < MAX_RUN_S):
            raise self.damage_error(line_number, "time does not advance")
        self.intervals.append(interval)
        self.since_start = line.get("since_start")
        times = self.decode(HistogramLine, line.get("times"), line_number)
        self.require_possible(times, line_number)
        for ns, count in times.classes:
            self.bucket_counts[ns] += count
        self.total_ns += times.total_ns
        self.max_ns = max(self.max_ns, times.max_ns)

    def require_possible(self, times: HistogramLine, line_number: int) -> None:
        """Refuse a histogram whose counts are too large to add."""
        if sum(count for _, count in times.classes) > MAX_COUNT:
            raise self.damage_error(line_number, "counts more than possible")

    def stats_without_summary(self, header: StatsHeader, line_number: int) -> RecordedRun:
        """Return the statistics of a run whose file has no summary."""
        statistics = self.decode(StatisticsSummary, self.since_start, line_number)
        total = HistogramLine(
            tuple(self.bucket_counts.items()), self.total_ns, self.max_ns, statistics.counters.missed
        )
        notes = tuple(note for interval in self.intervals for note in interval.events)
        where = "in the middle of a line" if self.cut else "without a summary"
        warnings.warn(
            PulseWarning(
                f"{self.path}: ends {where}, at {statistics.elapsed_s:.1f} s; the run was killed or still runs"
            ),
            stacklevel=4,
        )
        return RecordedRun(
            header,
            tuple(self.intervals),
            replace(statistics, notes=notes),
            {"total": total.latency(statistics.deadline_s)},
            complete=False,
        )

    def decode(self, record_class: type[Decoded], value: Any, line_number: int) -> Decoded:
        try:
            return decoder(record_class)(value)
        except (MisfitError, RecursionError) as misfit:
            raise self.damage_error(line_number, str(misfit)) from misfit

    def damage_error(self, line_number: int, problem: str) -> InputError:
        return InputError(f"{self.path}, line {line_number}: {problem}; the file is broken")

    def foreign_error(self) -> InputError:
        return InputError(f"{self.path}: is not a statistics file; {MADE_BY}")
