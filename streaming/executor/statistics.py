"""The statistics of an executor: where every frame that it took went, and how long pulses took."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from pulse.support.record import record
from pulse.support.report import field_values, json_value
from streaming.latency import Latency


@record
class ExecutorStatistics:
    """All since the start. A frame is one of the model's symbol, whole at every input.

    frames_in         taken from sources: ``frames_out + frames_dropped + frames_discarded + frames_in_flight``
    frames_out        in pulses whose outputs were given, silence included
    frames_silent     of these: silence was given
    frames_dropped    in pulses that the policy ``drop_oldest`` left out
    frames_discarded  not given since their stream was closed or failed
    frames_in_flight  wait for a pulse to fill, for the engine, or to be taken
    pulses            that ran, those at the end of streams included
    pulses_dropped    left out by ``drop_oldest``
    pulses_late       not there when they were wanted and due
    streams           that are open
    queueing          from the arrival of a pulse's last sample to its beginning to run
    compute           from there to its end
    total             from the arrival to its outputs being taken; counts what missed the deadline
    notes             requests to the system that were not granted
    """

    frames_in: int
    frames_out: int
    frames_silent: int
    frames_dropped: int
    frames_discarded: int
    frames_in_flight: int
    pulses: int
    pulses_dropped: int
    pulses_late: int
    streams: int
    queueing: Latency
    compute: Latency
    total: Latency
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The statistics for JSON."""
        return json_value(field_values(self))


_COUNTERS = tuple(
    field.name for field in fields(ExecutorStatistics) if field.type is int and field.name != "streams"
)
_TIMES = ("queueing", "compute", "total")


class StreamCounters:
    """The counts of a running stream; the fields are those of ``ExecutorStatistics``."""

    def __init__(self, deadline_s: float | None) -> None:
        self.frames_in = self.frames_out = self.frames_silent = 0
        self.frames_dropped = self.frames_discarded = self.frames_in_flight = 0
        self.pulses = self.pulses_dropped = self.pulses_late = 0
        self.queueing, self.compute, self.total = Latency(), Latency(), Latency(deadline_s)

    def record(self, arrived_ns: int, started_ns: int, ended_ns: int, taken_ns: int) -> None:
        """Count a pulse that ran."""
        self.pulses += 1
        self.queueing.record_ns(started_ns - arrived_ns)
        self.compute.record_ns(ended_ns - started_ns)
        self.total.record_ns(taken_ns - arrived_ns)

    def add(self, other: "StreamCounters") -> None:
        """Add what another has counted."""
        for name in _COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _TIMES:
            getattr(self, name).merge(getattr(other, name))


def total_statistics(
    tallies: Iterable[StreamCounters], streams: int, deadline_s: float | None, notes: Iterable[str]
) -> ExecutorStatistics:
    """The sum of tallies, a copy."""
    total = StreamCounters(deadline_s)
    for counters in tallies:
        total.add(counters)
    counts = {name: getattr(total, name) for name in (*_COUNTERS, *_TIMES)}
    return ExecutorStatistics(**counts, streams=streams, notes=tuple(notes))
