"""Columns: the intervals of a run, merged so that each column is visible in a picture."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.support.record import record
from pulse.support.wording import count_of
from streaming.stats.lines import IntervalStatistics
from streaming.stats.problems import GROUPS, group_count
from streaming.stats.reader import RecordedRun

MAX_COLUMNS = 1000
"""Maximum number of columns of a picture; the intervals of a longer run are merged."""
Numbers = NDArray[np.float64]


@record
class Columns:
    """Arrays with one value per column.

    merged     the number of intervals in a column
    edges_s    [columns + 1] the start of each column in seconds since the start of the run, and the end of the last
    p50_us     the median of the merged intervals' p50; NaN if no pulse was computed, as for the next two
    p99_us     the worst p99
    max_us     the longest time
    problems   group -> [columns] counts
    extents    group -> description for all columns together; empty if there are no problems
    """

    merged: int
    edges_s: Numbers
    p50_us: Numbers
    p99_us: Numbers
    max_us: Numbers
    problems: dict[str, NDArray[np.int64]]
    extents: dict[str, str]

    @classmethod
    def of(cls, stats: RecordedRun, max_columns: int = MAX_COLUMNS) -> "Columns":
        """Merge the intervals of a run into at most ``max_columns`` columns."""
        intervals = stats.intervals
        size = -(-len(intervals) // max_columns)
        parts = [intervals[index : index + size] for index in range(0, len(intervals), size)]
        begin_s = intervals[0].at_s - intervals[0].span_s
        return cls(
            size,
            np.array([begin_s, *(part[-1].at_s for part in parts)]),
            np.array([_merge_times(part, "p50_us", np.median) for part in parts]),
            np.array([_merge_times(part, "p99_us", np.max) for part in parts]),
            np.array([_merge_times(part, "max_us", np.max) for part in parts]),
            {
                name: np.array([sum(group_count(interval.new, name) for interval in part) for part in parts])
                for name in GROUPS
            },
            _extents(stats),
        )

    @property
    def unit(self) -> tuple[str, float]:
        """The unit of the time axis, and its length in seconds."""
        length_s = self.edges_s[-1] - self.edges_s[0]
        if length_s < 300:
            return "seconds", 1.0
        return ("minutes", 60.0) if length_s < 3 * 3600 else ("hours", 3600.0)


def _merge_times(
    part: tuple[IntervalStatistics, ...], name: str, merge: Callable[[list[float]], Any]
) -> float:
    values = [getattr(interval.total, name) for interval in part if interval.total.count]
    return float(merge(values)) if values else float("nan")


def _extents(stats: RecordedRun) -> dict[str, str]:
    """Describe the extent of each group of problems; missing sound as time."""
    setup, counters = stats.header.setup, stats.statistics.counters
    lost_s = (
        counters.frames_lost + counters.frames_skipped
    ) / setup.device_rate_hz + counters.pulses_dropped * setup.pulse_s
    silent_s = counters.frames_silent / setup.device_rate_hz
    amounts = {
        "late": (counters.missed, count_of(counters.missed, "pulse", form=",")),
        "silent": (silent_s, f"{1e3 * silent_s:,.1f} ms"),
        "lost": (lost_s, f"{1e3 * lost_s:,.1f} ms"),
        "xrun": (counters.xruns, count_of(counters.xruns, "flag", form=",")),
        "device": (counters.stalls + counters.reopened, count_of(counters.stalls, "stall", form=",")),
        "model": (counters.faults, count_of(counters.faults, "fault", form=",")),
    }
    return {name: text if amount else "" for name, (amount, text) in amounts.items()}
