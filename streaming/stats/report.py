"""What a file of statistics tells: the worst moments, and all of it as JSON."""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from streaming.stats.lines import Interval
from streaming.stats.problems import GROUPS, find_problems, group_count
from streaming.stats.reader import Stats
from streaming.stats.statistics import Counters

WORST = 5


@dataclass(frozen=True)
class Moment:
    """An interval that was worse than others.

    at_s   its begin, since the start; it lasted ``span_s``
    clock  the same on the clock of the machine
    p99_us, longest_us   from the arrival of a pulse until its output was ready
    new    what was counted in it
    """

    at_s: float
    span_s: float
    clock: datetime
    p99_us: float
    longest_us: float
    new: Counters
    events: tuple[str, ...]


def in_trouble(interval: Interval) -> bool:
    """Whether anything went wrong in an interval."""
    return any(group_count(interval.new, name) for name in GROUPS)


def worst(stats: Stats, count: int = WORST) -> list[Moment]:
    """The worst intervals in the order of time: first those where something went wrong, then the slowest."""

    def badness(interval: Interval) -> tuple[bool, float]:
        return in_trouble(interval), interval.total.max_us

    chosen = sorted(stats.intervals, key=badness, reverse=True)[:count]
    return [_moment(stats, interval) for interval in sorted(chosen, key=lambda interval: interval.at_s)]


def _moment(stats: Stats, interval: Interval) -> Moment:
    begin_s = interval.at_s - interval.span_s
    return Moment(
        begin_s,
        interval.span_s,
        stats.started + timedelta(seconds=begin_s),
        interval.total.p99_us,
        interval.total.max_us,
        interval.new,
        interval.events,
    )


def as_dict(stats: Stats) -> dict[str, Any]:
    """All but the single intervals, for JSON."""
    header, statistics = stats.header, stats.statistics
    return {
        "started": header.started,
        "complete": stats.complete,
        "intervals": len(stats.intervals),
        "interval_s": header.interval_s,
        "setup": asdict(header.setup),
        "versions": header.versions,
        "statistics": asdict(statistics),
        "end_to_end": {
            "total_s": statistics.delay.total_s,
            "stages": [{"stage": name, "seconds": seconds} for name, seconds in statistics.delay.stages],
        },
        "histogram": [
            {"from_s": low, "to_s": high, "count": count}
            for low, high, count in stats.times["total"].histogram()
        ],
        "worst": [asdict(moment) | {"clock": moment.clock.isoformat()} for moment in worst(stats)],
        "troubles": [asdict(trouble) for trouble in find_problems(header.setup, statistics)],
    }
