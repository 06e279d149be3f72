"""The statistics of an executor: what became of each frame, and how long pulses took."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from pulse.support.record import record
from pulse.support.report import field_values, json_value
from streaming.latency import LatencyHistogram


@record
class ExecutorStatistics:
    """Counts since the start. Frames are frames of the model's symbol, counted once complete at every input.

    frames_in         frames taken from sources: the sum of ``frames_out``, ``frames_dropped``, ``frames_discarded`` and
                      ``frames_in_flight``
    frames_out        frames whose outputs were returned, silence included
    frames_silent     the part of ``frames_out`` for which silence was returned
    frames_dropped    frames dropped by the policy ``drop_oldest``
    frames_discarded  frames not returned because their stream was closed or failed
    frames_in_flight  frames that wait for a pulse to fill, for the engine, or to be taken
    pulses            pulses that ran, those at the end of streams included
    pulses_dropped    pulses dropped by ``drop_oldest``
    pulses_late       pulses not ready when requested and due
    streams           open streams
    waiting           time from the arrival of a pulse's last sample to its start
    compute           time from its start to its end
    total             time from the arrival to its outputs being taken; counts missed deadlines
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
    waiting: LatencyHistogram
    compute: LatencyHistogram
    total: LatencyHistogram
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the statistics for JSON."""
        return json_value(field_values(self))


_COUNTERS = tuple(
    field.name for field in fields(ExecutorStatistics) if field.type is int and field.name != "streams"
)
_TIMES = ("waiting", "compute", "total")


class StreamCounters:
    """The counts of a running stream; the fields are those of ``ExecutorStatistics``."""

    def __init__(self, deadline_s: float | None) -> None:
        self.frames_in = self.frames_out = self.frames_silent = 0
        self.frames_dropped = self.frames_discarded = self.frames_in_flight = 0
        self.pulses = self.pulses_dropped = self.pulses_late = 0
        self.waiting, self.compute, self.total = (
            LatencyHistogram(),
            LatencyHistogram(),
            LatencyHistogram(deadline_s),
        )

    def record(self, arrived_ns: int, started_ns: int, ended_ns: int, taken_ns: int) -> None:
        """Count a pulse that ran."""
        self.pulses += 1
        self.waiting.record_ns(started_ns - arrived_ns)
        self.compute.record_ns(ended_ns - started_ns)
        self.total.record_ns(taken_ns - arrived_ns)

    def add(self, other: "StreamCounters") -> None:
        """Add the counts of another."""
        for name in _COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _TIMES:
            getattr(self, name).merge(getattr(other, name))


def total_statistics(
    tallies: Iterable[StreamCounters], streams: int, deadline_s: float | None, notes: Iterable[str]
) -> ExecutorStatistics:
    """Return the sum of the counters, as a copy."""
    total = StreamCounters(deadline_s)
    for counters in tallies:
        total.add(counters)
    counts = {name: getattr(total, name) for name in (*_COUNTERS, *_TIMES)}
    return ExecutorStatistics(**counts, streams=streams, notes=tuple(notes))
