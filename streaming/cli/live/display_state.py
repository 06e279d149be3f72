"""The state of a live display between updates: held peaks, recent latencies."""

from dataclasses import field
from math import inf, isnan, log10, nan

from pulse.support.record import record
from streaming.stats.live_statistics import LiveStatistics
from streaming.stats.ticks import Ticks

HOLD_S = 1.5
"""The seconds that the highest peak is held."""
REMEMBERED_INTERVALS = 240
"""The number of intervals to remember."""


@record
class Peak:
    """The present level of a channel and its held peak, held since ``since_s``; in dBFS."""

    now_db: float
    held_db: float
    since_s: float

    def next_peak(self, level: float, at_s: float) -> "Peak":
        """Return the peak after this level."""
        now_db = decibels(level)
        falls = at_s - self.since_s <= HOLD_S and not (now_db >= self.held_db or isnan(now_db))
        return Peak(now_db, *((self.held_db, self.since_s) if falls else (now_db, at_s)))


@record
class DisplayState:
    """The data that the display shows.

    ticks       the intervals of the display
    statistics  the latest statistics
    marked      the statistics at the end of the last interval; None before the first
    previous    those at the end of the interval before; None if there was none
    p99_us      the p99 of the last intervals; NaN if no pulse was computed
    peaks_in, peaks_out  the peak of each channel
    """

    ticks: Ticks = field(default_factory=Ticks)
    statistics: LiveStatistics | None = None
    marked: LiveStatistics | None = None
    previous: LiveStatistics | None = None
    p99_us: tuple[float, ...] = ()
    peaks_in: tuple[Peak, ...] = ()
    peaks_out: tuple[Peak, ...] = ()

    def next_state(self, statistics: LiveStatistics) -> "DisplayState":
        """Return the state after these statistics."""
        at_s, marked, previous, p99_us = statistics.elapsed_s, self.marked, self.previous, self.p99_us
        if self.ticks.is_due(0.0 if marked is None else marked.elapsed_s, at_s):
            total = statistics.total if marked is None else statistics.total.difference_from(marked.total)
            p99_us = (*p99_us, 1e6 * total.percentile_s(99) if total.count else nan)[-REMEMBERED_INTERVALS:]
            marked, previous = statistics, marked
        peaks_in = _update_peaks(self.peaks_in, statistics.levels_in, at_s)
        peaks_out = _update_peaks(self.peaks_out, statistics.levels_out, at_s)
        return DisplayState(self.ticks, statistics, marked, previous, p99_us, peaks_in, peaks_out)


def decibels(level: float) -> float:
    """Convert a linear level to dBFS: 1 is 0, 0 is minus infinity; NaN stays NaN."""
    if isnan(level):
        return nan
    return 20 * log10(level) if level > 0 else -inf


def _update_peaks(peaks: tuple[Peak, ...], levels: tuple[float, ...], at_s: float) -> tuple[Peak, ...]:
    if len(peaks) != len(levels):
        return tuple(Peak(decibels(level), decibels(level), at_s) for level in levels)
    return tuple(peak.next_peak(level, at_s) for peak, level in zip(peaks, levels))
