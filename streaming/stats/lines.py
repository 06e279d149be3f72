"""The lines of a statistics file: a header, one line per interval, a summary. Each line is one JSON object.

Times are in the unit that their names end with, frames are the device's. ``line`` is the kind of a line.
"""

import platform
from importlib.metadata import PackageNotFoundError, version

from pulse.support.record import record
from pulse.version import __version__
from streaming.latency import LatencyHistogram, LatencySummary
from streaming.stats.live_statistics import Counters, StatisticsSummary
from streaming.stats.setup import Setup

LINES_FORMAT = "pulse live statistics"
LINES_VERSION = 1
"""A file of another version is refused."""
HEADER, INTERVAL, SUMMARY = "header", "interval", "summary"
TIMES = {
    "total": "arrival -> output ready",
    "waiting": "arrival -> start of computing",
    "compute": "start -> end of computing",
    "callback": "inside a callback",
    "interval": "callback -> callback",
}
"""The histograms of statistics, and what each measures."""


@record
class StatsHeader:
    """The first line.

    format, version  ``LINES_FORMAT`` and ``LINES_VERSION``
    started     date and time of the start, ISO 8601
    interval_s  seconds between lines
    setup       the settings of the run
    versions    the versions of the software used
    """

    format: str
    version: int
    started: str
    interval_s: float
    setup: Setup
    versions: dict[str, str]


@record
class IntervalStatistics:
    """The statistics of one interval, which is the time since the previous line.

    at_s      its end, in seconds since the start
    span_s    its length in seconds
    new       the counters, of this interval alone
    total, waiting, compute, callback   percentiles of this interval alone; the longest to 1.6 %
    levels_in, levels_out   peaks, linear; None if a level is not finite
    load      compute time as a fraction of real time
    delay_s   the end-to-end delay
    events    new notes, except settings of the setup
    """

    at_s: float
    span_s: float
    new: Counters
    total: LatencySummary
    waiting: LatencySummary
    compute: LatencySummary
    callback: LatencySummary
    levels_in: tuple[float | None, ...]
    levels_out: tuple[float | None, ...]
    load: float
    delay_s: float
    events: tuple[str, ...]


@record
class HistogramLine:
    """A histogram: for each bucket that is not empty (``classes``), its longest time (ns) and count; totals."""

    classes: tuple[tuple[int, int], ...]
    total_ns: int
    max_ns: int
    missed: int

    @classmethod
    def of(cls, latency: LatencyHistogram) -> "HistogramLine":
        return cls(tuple(latency.bucket_counts()), latency.total_ns, latency.max_ns, latency.missed)

    def latency(self, deadline_s: float | None) -> LatencyHistogram:
        """Convert back to a latency."""
        return LatencyHistogram.of_bucket_counts(
            self.classes, self.total_ns, self.max_ns, self.missed, deadline_s
        )


@record
class IntervalLine:
    """An interval, the statistics since the start without notes, and the interval's histogram of ``total``."""

    interval: IntervalStatistics
    since_start: StatisticsSummary
    times: HistogramLine


@record
class SummaryLine:
    """The last line: the statistics of the whole run, and its histograms by name."""

    statistics: StatisticsSummary
    times: dict[str, HistogramLine]


def versions() -> dict[str, str]:
    """Return the versions of this project, Python, the system, and the libraries that process the sound."""
    numbers = {"pulse": __version__, "python": platform.python_version(), "system": platform.platform()}
    for name in ("numpy", "numba", "sounddevice"):
        try:
            numbers[name] = version(name)
        except PackageNotFoundError:
            numbers[name] = "none"
    return numbers
