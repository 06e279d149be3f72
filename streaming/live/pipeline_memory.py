"""PipelineMemory: the arrays to which the addresses in a pipeline's control block point."""

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from pulse.facts import Array
from pulse.jit.language.structs import S
from pulse.program.table.memory import align
from pulse.support.not_copyable import NotCopyable
from pulse.support.powers import next_power_of_two
from pulse.support.record import record
from streaming.live.config import ENGINES, EngineConfig, StreamConfig
from streaming.live.delay import PlannedDelay
from streaming.live.instances import Instances
from streaming.live.resamplers import Resamplers
from streaming.native.control_block import (
    RECORD_HEADER_BYTES,
    ArrivalTime,
    ControlBlock,
    Gains,
    StreamInput,
    StreamMemory,
)
from streaming.native.drift import Drift
from streaming.native.histogram import Histogram
from streaming.native.mixing import MEAN_OF_CHANNELS
from streaming.native.pulse_loop import pump, run_pulse
from streaming.policies import DEVICE_POLICIES

RING_S = 4.0
"""The seconds of audio that the ring on either side holds."""
MIN_ARRIVAL_TIMES = 1024
"""The minimum number of arrival times that are kept."""
MIN_BLOCK_FRAMES = 16
"""The assumed frames of a block of unknown size, which bounds the number of arrival times to keep."""
RECORD_SLOTS = 256
"""The minimum number of records for Python; more if the input ring holds more pulses."""


@record
class Histograms:
    """Histograms of times; of callbacks, one for the input side and one for the side that only plays."""

    total: Histogram = field(default_factory=Histogram.new)
    waiting: Histogram = field(default_factory=Histogram.new)
    compute: Histogram = field(default_factory=Histogram.new)
    callbacks: tuple[Histogram, ...] = field(default_factory=lambda: (Histogram.new(), Histogram.new()))
    intervals: tuple[Histogram, ...] = field(default_factory=lambda: (Histogram.new(), Histogram.new()))


class PipelineMemory(NotCopyable):
    """The control block of a pipeline, and the arrays that it points to.

    model_delay_frames  the delay of the audio, in frames of the model
    input_ring   the input ring; accepted frames stay for about ``RING_S``
    played_ring  the ring of played frames, silence included
    slots        the pulse being computed: the samples of each stream and input, as in a packed pulse
    gains        the gains of model and bypass
    records      outputs for Python, as bytes
    histograms   the times of pulses and callbacks
    arrays       all arrays
    """

    copy_error_reason = "it holds addresses of this process; make another one"

    def __init__(
        self,
        config: StreamConfig,
        engine_config: EngineConfig,
        schedule: PlannedDelay,
        resamplers: Resamplers,
        instances: Instances,
        model_delay_frames: int,
    ) -> None:
        self._config, self._engine_config, self._schedule = config, engine_config, schedule
        self._resamplers, self._instances, self._streams = resamplers, instances, len(instances.states)
        self._pulse, self._model_delay_frames = instances.program.pulse, model_delay_frames
        self.control_block = ControlBlock.new()
        self.arrays: list[Array] = [self.control_block.words]
        self.histograms = Histograms()
        pulse_out = resamplers.timing.in_device_frames(self._pulse)
        max_output_frames = pulse_out + (pulse_out // 100 + 2 if resamplers.outputs else 0)
        in_frames = ring_frames(config.rate_in_hz, 4 * config.block_frames)
        out_frames = ring_frames(
            config.rate_out_hz, 4 * (max_output_frames + schedule.frames + config.block_frames)
        )
        self.input_ring = self._floats(in_frames, config.channels_in)
        self.played_ring = self._floats(out_frames, max(config.channels_out, 1))
        self._inputs = len(instances.inputs)
        block = self._floats(self._streams, self._inputs, align(4 * self._pulse) // 4)
        self.slots = block[:, :, : self._pulse]
        self.gains = self._keep(Gains.new())
        self.gains.model = self.gains.wanted_model = self.gains.next_model = 1.0
        record_bytes = RECORD_HEADER_BYTES + self._streams * instances.output_bytes
        waiting = in_frames * config.rate_hz // (config.rate_in_hz * self._pulse) + 2
        records = next_power_of_two(max(waiting, RECORD_SLOTS))
        self.records = np.zeros((records if engine_config.records else 0, record_bytes), np.uint8)
        self.arrays.append(self.records)
        self._set_up_form()
        self._set_up_rings(max_output_frames)
        self._set_up_pace(pulse_out)
        self._set_up_streams()
        self._set_up_times()
        if config.two_clocks:
            self._set_up_drift()

    def _floats(self, *shape: int) -> NDArray[np.float32]:
        array = np.zeros(shape, np.float32)
        self.arrays.append(array)
        return array

    def _keep(self, structure: S) -> S:
        self.arrays.append(structure.words)
        return structure

    def _set_up_form(self) -> None:
        config, engine_config, control = self._config, self._engine_config, self.control_block
        control.virtual_clock = int(engine_config.virtual_clock)
        control.engine = ENGINES[engine_config.engine]
        control.policy = DEVICE_POLICIES[engine_config.policy]
        control.wake = -1
        control.in_channels = config.channels_in
        control.out_channels = config.channels_out
        control.stream_count = self._streams
        control.input_count = self._inputs
        control.pulse_frames = self._pulse
        control.rate_hz = config.rate_hz
        control.rate_in_hz = config.rate_in_hz
        control.rate_out_hz = config.rate_out_hz
        control.pump = pump.address
        control.run_pulse = run_pulse.address

    def _set_up_rings(self, max_output_frames: int) -> None:
        arrival_count = max(
            MIN_ARRIVAL_TIMES,
            next_power_of_two(len(self.input_ring) // max(self._config.block_frames, MIN_BLOCK_FRAMES)),
        )
        begins_with = self._schedule.frames - self._schedule.preroll_device_frames
        control = self.control_block
        control.in_ring = self.input_ring.ctypes.data
        control.in_ring_frames = len(self.input_ring)
        control.out_ring = self._floats(*self.played_ring.shape).ctypes.data
        control.out_ring_frames = len(self.played_ring)
        control.played_ring = self.played_ring.ctypes.data
        control.arrivals = self._keep(ArrivalTime.new(arrival_count)).address
        control.arrival_count = arrival_count
        control.max_output_frames = max_output_frames
        control.out_written = begins_with
        control.initial_frames = begins_with
        control.records = self.records.ctypes.data if len(self.records) else 0
        control.record_count = len(self.records)
        control.record_bytes = self.records.shape[1]
        control.output_bytes = self._instances.output_bytes

    def _set_up_pace(self, pulse_out: int) -> None:
        config, headroom, control = self._config, self._schedule.headroom_frames, self.control_block
        block = config.block_frames or pulse_out
        control.block_frames = block
        control.block_ns = round(block / config.rate_out_hz * 1e9)
        control.deadline_ns = round((headroom or block) / config.rate_out_hz * 1e9)
        control.planned_block_frames = headroom if headroom and not config.block_frames else -1

    def _set_up_streams(self) -> None:
        config, resamplers, control = self._config, self._resamplers, self.control_block
        streams = self._keep(StreamMemory.new(self._streams))
        inputs = self._keep(StreamInput.new(self._streams * self._inputs))
        lines = self._floats(self._streams, max(self._model_delay_frames, 1))
        dry = self._floats(self._streams, self._pulse)
        for stream_index in range(self._streams):
            for index in range(self._inputs):
                source = inputs[stream_index * self._inputs + index]
                source.channel = (
                    config.input_channels[index] if config.input_channels else self._channel(stream_index)
                )
                source.slot = self.slots[stream_index, index].ctypes.data
                if resamplers.inputs:
                    source.resampler = resamplers.inputs[stream_index * self._inputs + index].address
            stream = streams[stream_index]
            stream.slots = self.slots[stream_index].ctypes.data
            stream.out_resampler = resamplers.outputs[stream_index].address if resamplers.outputs else 0
            stream.dry, stream.dry_delay_line = dry[stream_index].ctypes.data, lines[stream_index].ctypes.data
            stream.dry_frames = self._model_delay_frames
        control.streams, control.inputs = streams.address, inputs.address
        control.instances = self._instances.address
        control.filled_frames, control.gains = self._schedule.preroll_model_frames, self.gains.address
        control.piece_frames = resamplers.largest
        control.scratch = self._floats(resamplers.largest).ctypes.data

    def _channel(self, stream: int) -> int:
        """Return the device channel of a stream of a model with one audio input, or ``MEAN_OF_CHANNELS``."""
        channels = self._config.channels
        return stream if channels.each else MEAN_OF_CHANNELS if channels.index is None else channels.index

    def _set_up_times(self) -> None:
        times, control = self.histograms, self.control_block
        control.total_times = self._keep(times.total).address
        control.waiting_times = self._keep(times.waiting).address
        control.compute_times = self._keep(times.compute).address
        sides = control.input_side, control.output_side
        for side, callbacks, intervals in zip(sides, times.callbacks, times.intervals):
            side.callback_times = self._keep(callbacks).address
            side.interval_times = self._keep(intervals).address

    def _set_up_drift(self) -> None:
        drift = self._keep(Drift.new())
        drift.delay_frames = drift.target_frames = self._schedule.frames - self._resamplers.held_frames
        self.control_block.drift = drift.address


def ring_frames(rate_hz: int, min_frames: int) -> int:
    """Return the frames of a ring that holds ``RING_S`` seconds and at least ``min_frames``: a power of two."""
    return next_power_of_two(max(int(RING_S * rate_hz), min_frames))
