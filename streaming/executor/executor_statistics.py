"""The statistics of an executor: what became of each frame, and how long pulses took."""

from collections.abc import Iterable
from dataclasses import field, fields
from typing import Any

from pulse.support.record import record
from pulse.support.report import field_values, json_value
from streaming.latency import LatencyHistogram


@record(frozen=False)
class StreamCounters:
    """The counts of a running stream. Frames are frames of the model's symbol, counted once complete at every input.

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
    waiting           time from the arrival of a pulse's last sample to its start
    compute           time from its start to its end
    total             time from the arrival to its outputs being taken; counts missed deadlines
    """

    frames_in: int = 0
    frames_out: int = 0
    frames_silent: int = 0
    frames_dropped: int = 0
    frames_discarded: int = 0
    frames_in_flight: int = 0
    pulses: int = 0
    pulses_dropped: int = 0
    pulses_late: int = 0
    waiting: LatencyHistogram = field(default_factory=LatencyHistogram)
    compute: LatencyHistogram = field(default_factory=LatencyHistogram)
    total: LatencyHistogram = field(default_factory=LatencyHistogram)

    def record(self, arrived_ns: int, started_ns: int, ended_ns: int, taken_ns: int) -> None:
        """Count a pulse that ran."""
        self.pulses += 1
        self.waiting.record_ns(started_ns - arrived_ns)
        self.compute.record_ns(ended_ns - started_ns)
        self.total.record_ns(taken_ns - arrived_ns)

    def add(self, other: "StreamCounters") -> None:
        """Add the counts of another."""
        for name in (member.name for member in fields(StreamCounters)):
            value, added = getattr(self, name), getattr(other, name)
            if isinstance(value, LatencyHistogram):
                value.merge(added)
            else:
                setattr(self, name, value + added)


@record(frozen=False)
class ExecutorStatistics(StreamCounters):
    """The counts of all streams since the start.

    streams  open streams
    notes    requests to the system that were not granted
    """

    streams: int = 0
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the statistics for JSON."""
        return json_value(field_values(self))


def total_statistics(
    tallies: Iterable[StreamCounters], streams: int, deadline_s: float | None, notes: Iterable[str]
) -> ExecutorStatistics:
    """Return the sum of the counters, as a copy."""
    total = ExecutorStatistics(total=LatencyHistogram(deadline_s), streams=streams, notes=tuple(notes))
    for counters in tallies:
        total.add(counters)
    return total
