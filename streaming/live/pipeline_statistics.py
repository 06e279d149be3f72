"""PipelineStatistics: statistics from the control block of a pipeline."""

import time

from streaming.latency import LatencyHistogram
from streaming.live.pipeline import Pipeline
from streaming.live.ring_reader import RingReader
from streaming.native.control_block import WAIT, ControlBlock
from streaming.native.device_side import underrun_frames
from streaming.native.histogram import Histogram, latency_of
from streaming.stats.live_statistics import Counters, DelayBreakdown, LiveStatistics


class PipelineStatistics:
    """Reads a pipeline's counters. Each reader needs its own, since levels and load are since its last call.

    pipeline  the pipeline to read; reading does not disturb it
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._started_s = self._now_s()
        self._captured = RingReader(pipeline.memory.input_ring, pipeline.control_block, "in_written")
        self._played = RingReader(pipeline.memory.played_ring, pipeline.control_block, "frames_out")
        self._last_read = self._started_s, 0

    def start(self) -> None:
        """Start counting seconds; called when the devices are open."""
        self._started_s = self._now_s()
        self._last_read = self._started_s, self._pipeline.control_block.compute_ns

    def read(
        self, delay: DelayBreakdown, stalls: int = 0, reopened: int = 0, notes: tuple[str, ...] = ()
    ) -> LiveStatistics:
        """Read the statistics of the pipeline; the load is that since the last call."""
        pipeline, times, now_s = self._pipeline, self._pipeline.memory.histograms, self._now_s()
        computed = pipeline.control_block.compute_ns
        since_s, computed_before = self._last_read
        elapsed_s = now_s - since_s
        self._last_read = now_s, computed
        missed = pipeline.control_block.missed
        return LiveStatistics(
            elapsed_s=now_s - self._started_s,
            counters=self.counters(stalls, reopened),
            delay=delay,
            deadline_s=pipeline.deadline_s,
            total=latency_of(times.total, pipeline.deadline_s, missed),
            waiting=latency_of(times.waiting),
            compute=latency_of(times.compute),
            callback=_merge_sides(times.callbacks),
            interval=_merge_sides(times.intervals),
            levels_in=self._captured.read_peaks(),
            levels_out=self._played.read_peaks() if pipeline.stream_config.channels_out else (),
            load=(computed - computed_before) / 1e9 / elapsed_s if elapsed_s > 0 else 0.0,
            notes=notes,
        )

    def counters(self, stalls: int = 0, reopened: int = 0) -> Counters:
        """Return the counters since the start."""
        control = ControlBlock(self._pipeline.control_block.words.copy())
        first, second = control.input_side, control.output_side
        return Counters(
            callbacks=first.callbacks + second.callbacks,
            pulses=control.pulses - control.pulses_dropped,
            frames_in=control.frames_in,
            frames_lost=control.frames_lost,
            frames_out=control.frames_out,
            frames_silent=control.frames_silent,
            frames_skipped=control.frames_skipped,
            frames_cut=control.frames_cut,
            pulses_dropped=control.pulses_dropped,
            missed=control.missed,
            input_underflows=first.input_underflows + second.input_underflows,
            input_overflows=first.input_overflows + second.input_overflows,
            output_underflows=first.output_underflows + second.output_underflows,
            output_overflows=first.output_overflows + second.output_overflows,
            stalls=stalls,
            reopened=reopened,
            faults=control.faults,
        )

    def _now_s(self) -> float:
        is_virtual = self._pipeline.engine_config.virtual_clock
        return self._pipeline.control_block.virtual_now_ns / 1e9 if is_virtual else time.monotonic()


def delay_of(pipeline: Pipeline, device_in_s: float, device_out_s: float) -> DelayBreakdown:
    """Return the end-to-end delay, the pipeline's part counted in frames."""
    planned, rate = pipeline.planned_delay, pipeline.stream_config.rate_out_hz
    added_frames = added_delay_frames(pipeline.control_block)
    return DelayBreakdown(
        device_in_s=device_in_s,
        reblocking_s=planned.reblocking_frames / rate,
        resampling_s=planned.resampling_frames / rate,
        headroom_s=(planned.headroom_frames + added_frames) / rate
        if pipeline.stream_config.channels_out
        else 0.0,
        model_s=pipeline.model_delay_frames / pipeline.stream_config.rate_hz,
        device_out_s=device_out_s,
        frames=pipeline.delay_frames + added_frames,
    )


def added_delay_frames(control: ControlBlock) -> int:
    """Return the frames of delay added permanently since the start.

    Delay is added if blocks of unknown size turn out longer than it allows for, or if output is late and the policy
    is ``wait``.
    """
    if control.policy != WAIT:
        return control.delay_growth_frames
    return control.delay_growth_frames + underrun_frames(
        control.frames_silent,
        control.frames_skipped,
        control.frames_lost,
        control.frames_before_restart,
        control.rate_in_hz,
        control.rate_out_hz,
    )


def measured_latency_s(pipeline: Pipeline) -> tuple[float, float] | None:
    """Return the input and output latency in seconds that the device last reported; None if it reports none."""
    control = pipeline.control_block
    captured_ago_s = control.input_side.input_age_s
    plays = control.output_side if pipeline.stream_config.two_clocks else control.input_side
    played_in_s = plays.played_in_s
    if not captured_ago_s or (pipeline.stream_config.channels_out and not played_in_s):
        return None
    return captured_ago_s, played_in_s if pipeline.stream_config.channels_out else 0.0


def _merge_sides(histograms: tuple[Histogram, ...]) -> LatencyHistogram:
    first, second = (latency_of(histogram) for histogram in histograms)
    first.merge(second)
    return first
