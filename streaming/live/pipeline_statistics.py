"""PipelineStatistics: statistics made of the control block of a pipeline."""

import ctypes
import time

import numpy as np
from numpy.typing import NDArray

from streaming.latency import Latency
from streaming.live.pipeline import Pipeline
from streaming.live.taps import Tap
from streaming.native import control_block as cb
from streaming.native.histogram import latency_of
from streaming.stats.statistics import Counters, Delay, LiveStatistics


class PipelineStatistics:
    """Reads what a pipeline counts; one for each who looks, since levels and load are those since the last statistics.

    pipeline  whose control block is read; reading disturbs nobody
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._started_s = self._now_s()
        self._captured = Tap(pipeline.memory.input_ring, pipeline.control_block, cb.IN_WRITTEN)
        self._played = Tap(pipeline.memory.played_ring, pipeline.control_block, cb.FRAMES_OUT)
        self._before = self._started_s, 0

    def begin(self) -> None:
        """The devices are open now: seconds count from here."""
        self._started_s = self._now_s()
        self._before = self._started_s, int(self._pipeline.control_block[cb.COMPUTE_NS])

    def read(
        self, delay: Delay, stalls: int = 0, reopened: int = 0, notes: tuple[str, ...] = ()
    ) -> LiveStatistics:
        """How the pipeline does now."""
        pipeline, times, now_s = self._pipeline, self._pipeline.memory.histograms, self._now_s()
        computed = int(pipeline.control_block[cb.COMPUTE_NS])
        since_s, computed_before = self._before
        elapsed_s = now_s - since_s
        self._before = now_s, computed
        missed = int(pipeline.control_block[cb.MISSED])
        return LiveStatistics(
            now_s - self._started_s,
            self.counters(stalls, reopened),
            delay,
            pipeline.deadline_s,
            latency_of(times.total, pipeline.deadline_s, missed),
            latency_of(times.waiting),
            latency_of(times.compute),
            _both(times.callbacks),
            _both(times.intervals),
            self._captured.peaks(),
            self._played.peaks() if pipeline.stream_config.channels_out else (),
            (computed - computed_before) / 1e9 / elapsed_s if elapsed_s > 0 else 0.0,
            notes,
        )

    def counters(self, stalls: int = 0, reopened: int = 0) -> Counters:
        """What has happened so far."""
        control = [int(field) for field in self._pipeline.control_block]

        def both(field: int) -> int:
            return control[cb.SIDES + field] + control[cb.SIDES + cb.SIDE_FIELDS + field]

        return Counters(
            callbacks=both(cb.CALLBACKS),
            pulses=control[cb.PULSES] - control[cb.PULSES_DROPPED],
            frames_in=control[cb.FRAMES_IN],
            frames_lost=control[cb.FRAMES_LOST],
            frames_out=control[cb.FRAMES_OUT],
            frames_silent=control[cb.FRAMES_SILENT],
            frames_skipped=control[cb.FRAMES_SKIPPED],
            pulses_dropped=control[cb.PULSES_DROPPED],
            missed=control[cb.MISSED],
            input_underflows=both(cb.INPUT_UNDERFLOWS),
            input_overflows=both(cb.INPUT_OVERFLOWS),
            output_underflows=both(cb.OUTPUT_UNDERFLOWS),
            output_overflows=both(cb.OUTPUT_OVERFLOWS),
            stalls=stalls,
            reopened=reopened,
            faults=control[cb.FAULTS],
        )

    def _now_s(self) -> float:
        is_virtual = self._pipeline.engine_config.virtual_clock
        return int(self._pipeline.control_block[cb.VIRTUAL_NOW_NS]) / 1e9 if is_virtual else time.monotonic()


def delay_of(pipeline: Pipeline, device_in_s: float, device_out_s: float) -> Delay:
    """The end-to-end latency, the pipeline's part counted in frames."""
    schedule, rate, late = (
        pipeline.schedule,
        pipeline.stream_config.rate_out_hz,
        late_frames(pipeline.control_block),
    )
    return Delay(
        device_in_s=device_in_s,
        reblocking_s=schedule.reblocking / rate,
        resampling_s=schedule.resampling / rate,
        headroom_s=(schedule.headroom + late) / rate if pipeline.stream_config.channels_out else 0.0,
        model_s=pipeline.model_delay / pipeline.stream_config.rate_hz,
        device_out_s=device_out_s,
        frames=pipeline.delay_frames + late,
    )


def late_frames(control: "NDArray[np.int64] | ctypes.Array[ctypes.c_int64]") -> int:
    """By how much more than agreed at first what is played is late, for good.

    Blocks that were not known before are longer than the delay allows for; or something was late, and the policy is
    to wait.
    """
    grown = int(control[cb.GROWN])
    if control[cb.POLICY] != cb.WAITS:
        return grown
    lost = int(control[cb.FRAMES_LOST]) * int(control[cb.OUT_RATE]) // int(control[cb.IN_RATE])
    return grown + int(control[cb.FRAMES_SILENT]) - lost


def measured_latency_s(pipeline: Pipeline) -> tuple[float, float] | None:
    """The input and output latency in seconds that the device stated in its last callback; None if it stated none."""
    stated = pipeline.control_block[cb.SIDES : cb.SIDES + 2 * cb.SIDE_FIELDS].view(np.float64).reshape(2, -1)
    captured_ago_s = float(stated[0, cb.INPUT_AGE_S])
    played_in_s = float(stated[1 if pipeline.stream_config.two_clocks else 0, cb.PLAYED_IN_S])
    if not captured_ago_s or (pipeline.stream_config.channels_out and not played_in_s):
        return None
    return captured_ago_s, played_in_s if pipeline.stream_config.channels_out else 0.0


def _both(histograms: tuple[NDArray[np.int64], ...]) -> Latency:
    first, second = (latency_of(histogram) for histogram in histograms)
    first.merge(second)
    return first
