"""PipelineMemory: the arrays to which the addresses in a pipeline's control block point."""

from dataclasses import field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pulse.facts import Array
from pulse.jit.language.structs import S
from pulse.support.not_copyable import NotCopyable
from pulse.support.powers import next_power_of_two
from pulse.support.record import record
from streaming.audio.channels import InputChannel, input_channels
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
    StreamOutput,
)
from streaming.native.drift import Drift
from streaming.native.histogram import Histogram
from streaming.native.mixing import MEAN_OF_CHANNELS
from streaming.native.pulse_loop import pump, run_pulse
from streaming.policies import POLICIES

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


class PipelineMemory(NotCopyable, reason="it holds addresses of this process; make another one"):
    """The control block of a pipeline, and the arrays that it points to.

    model_delay_frames  the delay of the audio, in frames of the model
    input_ring   the input ring; accepted frames stay for about ``RING_S``
    played_ring  the ring of played frames, silence included
    slots        the pulse being computed: the packed inputs of each stream
    gains        the gains of model and bypass
    records      outputs for Python, as bytes
    histograms   the times of pulses and callbacks
    arrays       all arrays
    """

    def __init__(
        self,
        config: StreamConfig,
        engine_config: EngineConfig,
        planned_delay: PlannedDelay,
        resamplers: Resamplers,
        instances: Instances,
        model_delay_frames: int,
    ) -> None:
        self._config, self._engine_config, self._planned_delay = config, engine_config, planned_delay
        self._resamplers, self._instances, self._streams = resamplers, instances, len(instances.states)
        self._pulse, self._model_delay_frames = instances.program.pulse, model_delay_frames
        self.control_block = ControlBlock.new()
        self.arrays: list[Array] = [self.control_block.words]
        self.histograms = Histograms()
        pulse_out = resamplers.timing.in_device_frames(self._pulse)
        max_output_frames = pulse_out + (pulse_out // 100 + 2 if resamplers.outputs else 0)
        in_frames = ring_frames(config.rate_in_hz, 4 * config.block_frames)
        out_frames = ring_frames(
            config.rate_out_hz, 4 * (max_output_frames + planned_delay.frames + config.block_frames)
        )
        self.input_ring = self._floats(in_frames, config.channels_in)
        self.played_ring = self._floats(out_frames, max(config.channels_out, 1))
        self._inputs = input_channels(instances.inputs)
        self._outputs = 0 if instances.sound is None else len(instances.sound.channels)
        self.slots = self._floats(self._streams, instances.slot_floats)
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
        control.policy = POLICIES[engine_config.policy].code
        control.wake = -1
        control.in_channels = config.channels_in
        control.out_channels = config.channels_out
        control.stream_count = self._streams
        control.input_count = len(self._inputs)
        control.output_count = self._outputs
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
        begins_with = self._planned_delay.frames - self._planned_delay.preroll_device_frames
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
        config, headroom, control = self._config, self._planned_delay.headroom_frames, self.control_block
        block = config.block_frames or pulse_out
        control.block_frames = block
        control.block_ns = round(block / config.rate_out_hz * 1e9)
        control.deadline_ns = round((headroom or block) / config.rate_out_hz * 1e9)
        control.planned_block_frames = headroom if headroom and not config.block_frames else -1

    def _set_up_streams(self) -> None:
        control = self.control_block
        control.slots, control.slot_bytes = self.slots.ctypes.data, self.slots.strides[0]
        self._set_up_inputs()
        self._set_up_outputs()
        control.instances = self._instances.address
        control.filled_frames, control.gains = self._planned_delay.preroll_model_frames, self.gains.address
        control.piece_frames = self._resamplers.largest
        control.scratch = self._floats(self._resamplers.largest).ctypes.data

    def _set_up_inputs(self) -> None:
        config, resamplers, count = self._config, self._resamplers.inputs, len(self._inputs)
        inputs = self._keep(StreamInput.new(self._streams * count))
        for stream, (index, channel) in product(range(self._streams), enumerate(self._inputs)):
            source = inputs[stream * count + index]
            source.channel = config.input_channels[index] if config.input_channels else self._channel(stream)
            source.slot, source.step = self._slot(stream, channel)
            if resamplers:
                source.resampler = resamplers[stream * count + index].address
        self.control_block.inputs = inputs.address

    def _set_up_outputs(self) -> None:
        """Set up the played channels; bypass plays the channels of the first input, the last one if there are fewer."""
        count, resamplers = self._outputs, self._resamplers.outputs
        outputs = self._keep(StreamOutput.new(max(self._streams * count, 1)))
        lines = self._floats(self._streams, count, max(self._model_delay_frames, 1))
        dry = self._floats(self._streams, count, self._pulse)
        first = input_channels(self._instances.inputs[:1])
        for stream, index in product(range(self._streams), range(count)):
            output = outputs[stream * count + index]
            output.resampler = resamplers[stream * count + index].address if resamplers else 0
            output.dry_slot, output.dry_step = self._slot(stream, first[min(index, len(first) - 1)])
            output.dry = dry[stream, index].ctypes.data
            output.dry_delay_line = lines[stream, index].ctypes.data
            output.dry_frames = self._model_delay_frames
        self.control_block.outputs = outputs.address

    def _slot(self, stream: int, channel: InputChannel) -> tuple[int, int]:
        """Return the address of the first sample of a channel in the slots, and the elements to the next one."""
        start, step = self._instances.slot_layout(channel)
        return self.slots[stream, start:].ctypes.data, step

    def _channel(self, stream: int) -> int:
        """Return the device channel of a stream of a model with one input channel, or ``MEAN_OF_CHANNELS``."""
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
        drift.delay_frames = drift.target_frames = self._planned_delay.frames - self._resamplers.held_frames
        self.control_block.drift = drift.address


def ring_frames(rate_hz: int, min_frames: int) -> int:
    """Return the frames of a ring that holds ``RING_S`` seconds and at least ``min_frames``: a power of two."""
    return next_power_of_two(max(int(RING_S * rate_hz), min_frames))
