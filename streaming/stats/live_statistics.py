"""The statistics of a live run: counters, times, and the end-to-end delay."""

from dataclasses import asdict, fields
from math import isfinite
from typing import Any

from pulse.support.record import record
from pulse.support.report import field_values
from streaming.latency import LatencyHistogram, LatencySummary


@record
class Counters:
    """The counters since the start. A frame is one sample of every channel of the device.

    callbacks           calls of the device
    pulses              pulses computed; one of all streams together counts as one
    frames_in           frames that the device delivered
    frames_lost         the part of ``frames_in`` lost for lack of space
    frames_out          frames that the device took, silence included
    frames_silent       the part of ``frames_out`` that was silence because nothing was ready, without the planned delay
    frames_skipped      frames computed, but too late to be played
    frames_cut          frames computed, but cut where devices start, so that the output has the planned delay
    pulses_dropped      pulses dropped by the policy ``drop_oldest``
    missed              pulses that were ready after their deadline
    input_underflows    flags of the audio system: it padded its input with silence
    input_overflows     flags: it discarded input
    output_underflows   flags: it played a gap
    output_overflows    flags: it discarded output
    stalls              times that the device stopped calling
    reopened            times that the device was opened again
    faults              values for which a node of the model had no result, such as an index outside its table
    """

    callbacks: int = 0
    pulses: int = 0
    frames_in: int = 0
    frames_lost: int = 0
    frames_out: int = 0
    frames_silent: int = 0
    frames_skipped: int = 0
    frames_cut: int = 0
    pulses_dropped: int = 0
    missed: int = 0
    input_underflows: int = 0
    input_overflows: int = 0
    output_underflows: int = 0
    output_overflows: int = 0
    stalls: int = 0
    reopened: int = 0
    faults: int = 0

    @property
    def xruns(self) -> int:
        """The sum of all flags of the audio system."""
        return self.input_underflows + self.input_overflows + self.output_underflows + self.output_overflows

    def difference_from(self, earlier: "Counters") -> "Counters":
        """Return the difference from ``earlier``."""
        return Counters(*(getattr(self, field.name) - getattr(earlier, field.name) for field in fields(self)))


@record
class DelayBreakdown:
    """The end-to-end delay by stage, in seconds, constant while nothing is late.

    device_in_s    time from the microphone until a sample arrives, as the audio system reports it
    reblocking_s   time until a pulse is full, and until a block can be filled from pulses
    resampling_s   the delay of both resamplers; 0 if rates are equal
    headroom_s     additional delay that allows time for computing
    model_s        the look-ahead of the model
    device_out_s   time until a delivered sample is played, as the audio system reports it
    frames         the delay in device frames between input and output, the device's own latency excluded
    """

    device_in_s: float
    reblocking_s: float
    resampling_s: float
    headroom_s: float
    model_s: float
    device_out_s: float
    frames: int

    def __str__(self) -> str:
        """List the stages, except those of zero length."""
        stages = " + ".join(f"{name} {1e3 * seconds:.1f}" for name, seconds in self.stages if seconds)
        return f"{1e3 * self.total_s:.1f} ms end to end" + (f" = {stages}" if stages else "")

    @property
    def total_s(self) -> float:
        """The sum of all stages."""
        return sum(seconds for _, seconds in self.stages)

    @property
    def stages(self) -> tuple[tuple[str, float], ...]:
        """Name and seconds of each stage, in the order in which sound passes them."""
        return (
            ("device in", self.device_in_s),
            ("re-blocking", self.reblocking_s),
            ("resampling", self.resampling_s),
            ("headroom", self.headroom_s),
            ("model", self.model_s),
            ("device out", self.device_out_s),
        )


@record
class StatisticsSummary:
    """Statistics with percentiles in place of histograms, as printed and written as JSON.

    A level is None if it is not finite.
    """

    elapsed_s: float
    counters: Counters
    delay: DelayBreakdown
    deadline_s: float
    total: LatencySummary
    waiting: LatencySummary
    compute: LatencySummary
    callback: LatencySummary
    interval: LatencySummary
    levels_in: tuple[float | None, ...]
    levels_out: tuple[float | None, ...]
    load: float
    notes: tuple[str, ...]


@record
class LiveStatistics:
    """The statistics of a live run.

    elapsed_s    seconds since the start
    counters     the counters since the start
    delay        the end-to-end delay by stage
    deadline_s   the longest time in seconds from the arrival of a pulse until its output must be ready
    total        time from the arrival of a pulse's last sample (entry of the callback) until its output is ready
    waiting      time from that arrival until the start of computing
    compute      time from there until the end of the model
    callback     the time inside a callback
    interval     time from callback to callback
    levels_in    the peak of each input channel since the previous reading, linear: 1 is full scale
    levels_out   the same for the played sound
    load         compute time as a fraction of real time, over the last interval
    notes        requests that were not granted, and events
    """

    elapsed_s: float
    counters: Counters
    delay: DelayBreakdown
    deadline_s: float
    total: LatencyHistogram
    waiting: LatencyHistogram
    compute: LatencyHistogram
    callback: LatencyHistogram
    interval: LatencyHistogram
    levels_in: tuple[float, ...]
    levels_out: tuple[float, ...]
    load: float
    notes: tuple[str, ...] = ()

    def summary(self) -> StatisticsSummary:
        """Return the present statistics with percentiles."""
        values = field_values(self)
        for name, value in values.items():
            if isinstance(value, LatencyHistogram):
                values[name] = value.summary()
            elif name.startswith("levels"):
                values[name] = finite_or_none(value)
        return StatisticsSummary(**values)

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as a dictionary, for JSON."""
        return asdict(self.summary())


def finite_or_none(levels: tuple[float, ...]) -> tuple[float | None, ...]:
    """Return the levels, with None for those that are infinite or NaN, which JSON lacks."""
    return tuple(level if isfinite(level) else None for level in levels)
