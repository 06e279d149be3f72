"""The report of a statistics file: a description of the run, its times, and the worst intervals."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, Table, duration
from pulse.support.wording import count_of
from streaming.latency import LatencySummary
from streaming.stats.lines import TIMES, IntervalStatistics
from streaming.stats.live_statistics import Counters, DelayBreakdown, StatisticsSummary
from streaming.stats.problems import GROUPS, describe_counters, find_problems, group_count
from streaming.stats.reader import RecordedRun
from streaming.stats.summary import LiveReport, span

MAX_WORST = 5
"""How many of the worst intervals a report lists."""
BAR_COLUMNS = 30
PERCENTILES = ("p50", "p90", "p99", "p99.9", "max")


@record
class WorstInterval:
    """An interval that was worse than others.

    at_s   its beginning, in seconds since the start; it lasted ``span_s``
    span_s  its length in seconds
    clock  the same as time of day
    p99_us, longest_us   times from the arrival of a pulse until its output was ready
    new    the counters of the interval
    events  the notes of the interval
    """

    at_s: float
    span_s: float
    clock: datetime
    p99_us: float
    longest_us: float
    new: Counters
    events: tuple[str, ...]


def worst_intervals(stats: RecordedRun, count: int = MAX_WORST) -> list[WorstInterval]:
    """Return the worst intervals in order of time. Those with problems are chosen first, then the slowest."""

    def badness(interval: IntervalStatistics) -> tuple[bool, float]:
        return any(group_count(interval.new, name) for name in GROUPS), interval.total.max_us

    intervals = sorted(stats.intervals, key=badness, reverse=True)[:count]
    return [
        _worst_interval(stats, interval) for interval in sorted(intervals, key=lambda interval: interval.at_s)
    ]


def _worst_interval(stats: RecordedRun, interval: IntervalStatistics) -> WorstInterval:
    begin_s = interval.at_s - interval.span_s
    return WorstInterval(
        begin_s,
        interval.span_s,
        stats.start_time + timedelta(seconds=begin_s),
        interval.total.p99_us,
        interval.total.max_us,
        interval.new,
        interval.events,
    )


@record
class StatsReport(Report):
    """The report of a statistics file: without the individual intervals."""

    stats: RecordedRun

    def sections(self) -> list[Section]:
        """Return the description of the run, all measured times, the end-to-end delay, and the worst intervals."""
        stats = self.stats
        run = ("run", f"{stats.start_time:%Y-%m-%d %H:%M:%S}")
        return [
            Pairs([run, *LiveReport(stats.header.setup, stats.statistics).pairs()]),
            _times_table(stats.statistics),
            _delay_table(stats.statistics.delay),
            _worst_table(worst_intervals(stats)),
        ]

    def values(self) -> dict[str, Any]:
        stats, header, statistics = self.stats, self.stats.header, self.stats.statistics
        return {
            "started": header.started,
            "complete": stats.complete,
            "intervals": len(stats.intervals),
            "interval_s": header.interval_s,
            "setup": header.setup,
            "versions": header.versions,
            "statistics": statistics,
            "end_to_end": {
                "total_s": statistics.delay.total_s,
                "stages": [{"stage": name, "seconds": seconds} for name, seconds in statistics.delay.stages],
            },
            "histogram": stats.times["total"].histogram(),
            "worst": worst_intervals(stats),
            "problems": find_problems(header.setup, statistics),
        }


def _times_table(statistics: StatisticsSummary) -> Table:
    rows: list[list[str]] = []
    for name, words in TIMES.items():
        latency: LatencySummary = getattr(statistics, name)
        cells = [duration(us / 1e6) if latency.count else "" for us in latency.percentiles().values()]
        rows.append([name, words, *cells, f"{latency.count:,}"])
    return Table("times", ("", "", *PERCENTILES, "count"), rows, range(2, 8))


def _delay_table(delay: DelayBreakdown) -> Table:
    total_s = delay.total_s
    rows = [
        [name, f"{1e3 * seconds:.2f} ms", "█" * round(BAR_COLUMNS * seconds / total_s) if total_s else ""]
        for name, seconds in delay.stages
    ]
    frames = f"{count_of(delay.frames, 'frame', form=',')} of the device without the device's own"
    rows.append(["all", f"{1e3 * total_s:.2f} ms", frames])
    return Table("end-to-end delay", ("", "", ""), rows, (1,))


def _worst_table(intervals: Sequence[WorstInterval]) -> Table:
    rows = [
        [
            f"{interval.clock:%Y-%m-%d %H:%M:%S}",
            span(interval.at_s),
            duration(interval.p99_us / 1e6),
            duration(interval.longest_us / 1e6),
            "; ".join(filter(None, [describe_counters(interval.new), *interval.events])),
        ]
        for interval in intervals
    ]
    return Table("worst intervals", ("clock", "after", "p99", "max", "what happened"), rows, (1, 2, 3))
