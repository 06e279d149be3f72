"""StatsWriter: writes statistics of a live run as JSON lines while it runs."""

import json
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from pulse.errors import InputError, file_errors
from pulse.support.not_copyable import NotCopyable
from streaming.files.atomic import write_error
from streaming.files.partial import append_all
from streaming.latency import LatencyHistogram
from streaming.stats.lines import (
    HEADER,
    INTERVAL,
    LINES_FORMAT,
    LINES_VERSION,
    SUMMARY,
    TIMES,
    HistogramLine,
    IntervalLine,
    IntervalStatistics,
    StatsHeader,
    SummaryLine,
    versions,
)
from streaming.stats.live_statistics import LiveStatistics, finite_or_none
from streaming.stats.setup import Setup
from streaming.stats.ticks import Ticks


class StatsWriter(NotCopyable, reason="it writes one file; make another one with another path"):
    """Writes a header at once, a line per interval, and a summary at the end; the file only ever has complete lines.

    Errors after the header, such as a full disk, never stop the run: the file is truncated to its last complete
    line, ``problem`` is the error, and the next line that succeeds covers the missing time.

    path        the file, replaced if it exists
    setup       the settings of the run
    interval_s  seconds per line
    Raises      InputError: the file cannot be written, or the interval is invalid
    """

    def __init__(self, path: Path, setup: Setup, interval_s: float = 1.0) -> None:
        self.ticks = Ticks(interval_s)
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is not a file that can be replaced; give the name of a file")
        self.path = path
        self.problem: InputError | None = None
        with file_errors(path, "written", InputError, "check the folder"):
            self._file = open(path, "wb", buffering=0)  # noqa: SIM115
        self._setup_notes = {str(setting) for setting in setup.realtime_settings}
        self._written = 0
        self._previous: LiveStatistics | None = None
        self._levels_in: tuple[float, ...] = ()
        self._levels_out: tuple[float, ...] = ()
        self._computed_s = 0.0
        self._seen_s = 0.0
        start_time = datetime.now().astimezone().isoformat(timespec="milliseconds")
        reason = self._write(
            HEADER, StatsHeader(LINES_FORMAT, LINES_VERSION, start_time, interval_s, setup, versions())
        )
        if reason is not None:
            self._file.close()
            raise write_error(path, reason)

    def update(self, statistics: LiveStatistics) -> None:
        """Take new statistics, and write a line if one is due. Call often: levels are peaks since the previous call."""
        self._levels_in = loudest(self._levels_in, statistics.levels_in)
        self._levels_out = loudest(self._levels_out, statistics.levels_out)
        self._computed_s += statistics.load * (statistics.elapsed_s - self._seen_s)
        self._seen_s = statistics.elapsed_s
        before_s = 0.0 if self._previous is None else self._previous.elapsed_s
        if self.ticks.is_due(before_s, statistics.elapsed_s):
            self._add(statistics)

    def close(self, statistics: LiveStatistics | None = None) -> None:
        """End the file. Given statistics, first write the rest of the last interval and the summary."""
        if self._file.closed:
            return
        if statistics is not None:
            self.update(statistics)
            if self._previous is None or statistics.elapsed_s > self._previous.elapsed_s:
                self._add(statistics)
            times = {name: HistogramLine.of(getattr(statistics, name)) for name in TIMES}
            reason = self._write(SUMMARY, SummaryLine(statistics.summary(), times))
            if reason is not None:
                self.problem = InputError(f"{self.path}: {reason}; the file ends without a summary")
        try:
            self._file.close()
        except OSError as error:
            self.problem = InputError(
                f"{self.path}: {error.strerror or error}; the end of the file may be missing"
            )

    def _add(self, statistics: LiveStatistics) -> None:
        reason = self._write(INTERVAL, self._line(statistics))
        if reason is not None:
            self.problem = InputError(
                f"{self.path}: {reason} at {statistics.elapsed_s:.1f} s; the missing intervals follow in one line when "
                "there is space"
            )
            return
        self._previous = statistics
        self._levels_in = self._levels_out = ()
        self._computed_s = 0.0

    def _line(self, statistics: LiveStatistics) -> IntervalLine:
        previous = self._previous
        span_s = statistics.elapsed_s - (0.0 if previous is None else previous.elapsed_s)
        earlier_notes = self._setup_notes if previous is None else self._setup_notes.union(previous.notes)

        def new(name: str) -> LatencyHistogram:
            latency: LatencyHistogram = getattr(statistics, name)
            return latency if previous is None else latency.difference_from(getattr(previous, name))

        total = new("total")
        interval = IntervalStatistics(
            at_s=statistics.elapsed_s,
            span_s=span_s,
            new=statistics.counters
            if previous is None
            else statistics.counters.difference_from(previous.counters),
            total=total.summary(),
            waiting=new("waiting").summary(),
            compute=new("compute").summary(),
            callback=new("callback").summary(),
            levels_in=finite_or_none(self._levels_in),
            levels_out=finite_or_none(self._levels_out),
            load=self._computed_s / span_s if span_s else 0.0,
            delay_s=statistics.delay.total_s,
            events=tuple(note for note in statistics.notes if note not in earlier_notes),
        )
        return IntervalLine(interval, replace(statistics.summary(), notes=()), HistogramLine.of(total))

    def _write(self, line: str, record: StatsHeader | IntervalLine | SummaryLine) -> str | None:
        """Write all of a line, or none of it and return the reason."""
        text = json.dumps({"line": line} | _round(asdict(record)), allow_nan=False, separators=(",", ":"))
        try:
            self._written = append_all(self._file, self._written, text.encode() + b"\n")
        except OSError as error:
            return error.strerror
        return None


def loudest(levels: tuple[float, ...], other_levels: tuple[float, ...]) -> tuple[float, ...]:
    """Return the larger level of each channel."""
    return tuple(map(max, levels, other_levels)) if len(levels) == len(other_levels) else other_levels


def _round(value: Any) -> Any:
    """Round seconds to nanoseconds."""
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return {name: _round(member) for name, member in cast("dict[str, Any]", value).items()}
    if isinstance(value, tuple):
        return [_round(element) for element in cast("tuple[Any, ...]", value)]
    return value
