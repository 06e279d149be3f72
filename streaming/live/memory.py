"""Memory: what compiled code finds at the addresses in the control block of a pipeline."""

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from pulse.facts import Array
from pulse.not_copyable import NotCopyable
from pulse.program.memory import aligned, aligned_bytes
from pulse.record import record
from streaming.live.config import ENGINES, POLICIES, EngineConfig, StreamConfig
from streaming.live.instances import Instances
from streaming.live.resamplers import Resamplers
from streaming.live.schedule import Schedule
from streaming.native import control_block as cb
from streaming.native.histogram import new_histogram
from streaming.native.mixing import MIX
from streaming.native.pipeline import pump, run_pulse

RING_S = 4.0
"""What can wait on either side."""
MARKS = 1024
SHORTEST = 16
"""Frames of a block that is not known, for how many times of arrival there is room."""
RECORDS = 256


@record
class Histograms:
    """Histograms; those of callbacks are of the side that brings input, and of the one that only takes output."""

    total: NDArray[np.int64] = field(default_factory=new_histogram)
    waiting: NDArray[np.int64] = field(default_factory=new_histogram)
    compute: NDArray[np.int64] = field(default_factory=new_histogram)
    callbacks: tuple[NDArray[np.int64], ...] = field(
        default_factory=lambda: (new_histogram(), new_histogram())
    )
    intervals: tuple[NDArray[np.int64], ...] = field(
        default_factory=lambda: (new_histogram(), new_histogram())
    )


class PipelineMemory(NotCopyable):
    """The control block of a pipeline, set up, and all that they point to.

    model_delay  frames of the model that the sound is late by

    input_ring   the ring of input; accepted frames stay for about ``RING_S``
    played_ring  the ring of played frames, silence included
    slots    the pulse that is computed: for each stream and input its samples, as a packed pulse has them
    gains    model and bypass now, then what they are to become, then what they are becoming
    records  outputs for Python, as bytes
    histograms  of times
    arrays   all of it
    """

    instead = "it holds addresses of this process; make another one"

    def __init__(
        self,
        config: StreamConfig,
        engine_config: EngineConfig,
        schedule: Schedule,
        resamplers: Resamplers,
        instances: Instances,
        model_delay: int,
    ) -> None:
        self._config, self._engine_config, self._schedule = config, engine_config, schedule
        self._resamplers, self._instances, self._streams = resamplers, instances, len(instances.states)
        self._pulse, self._model_delay = instances.program.pulse, model_delay
        self.control_block: NDArray[np.int64] = aligned_bytes(8 * cb.PIPELINE_FIELDS).view(np.int64)
        self.arrays: list[Array] = [self.control_block]
        self.histograms = Histograms()
        pulse_out = resamplers.timing.in_device_frames(self._pulse)
        largest_output = pulse_out + (pulse_out // 100 + 2 if resamplers.outward else 0)
        in_frames = ring_frames(config.rate_in_hz, 4 * config.block_frames)
        out_frames = ring_frames(
            config.rate_out_hz, 4 * (largest_output + schedule.frames + config.block_frames)
        )
        self.input_ring = self._floats(in_frames, config.channels_in)
        self.played_ring = self._floats(out_frames, max(config.channels_out, 1))
        self._inputs = len(instances.inputs)
        packed = self._floats(self._streams, self._inputs, aligned(4 * self._pulse) // 4)
        self.slots = packed[:, :, : self._pulse]
        self.gains = self._floats(6)
        self.gains[::2] = 1
        record_bytes = cb.RECORD_HEADER + self._streams * instances.output_bytes
        waiting = in_frames * config.rate_hz // (config.rate_in_hz * self._pulse) + 2
        records = power_of_two(max(waiting, RECORDS))
        self.records = np.zeros((records if engine_config.records else 0, record_bytes), np.uint8)
        self.arrays.append(self.records)
        self._set_up_form()
        self._set_up_rings(largest_output)
        self._set_up_pace(pulse_out)
        self._set_up_streams()
        self._set_up_times()
        if config.two_clocks:
            self._set_up_drift()

    def _floats(self, *shape: int) -> NDArray[np.float32]:
        made = np.zeros(shape, np.float32)
        self.arrays.append(made)
        return made

    def _integers(self, *shape: int) -> NDArray[np.int64]:
        made = np.zeros(shape, np.int64)
        self.arrays.append(made)
        return made

    def _set(self, values: dict[int, int]) -> None:
        for number, value in values.items():
            self.control_block[number] = value

    def _set_up_form(self) -> None:
        config, engine_config = self._config, self._engine_config
        self._set(
            {
                cb.VIRTUAL_CLOCK: int(engine_config.virtual_clock),
                cb.ENGINE: ENGINES[engine_config.engine],
                cb.POLICY: POLICIES[engine_config.policy],
                cb.WAKE: -1,
                cb.IN_CHANNELS: config.channels_in,
                cb.OUT_CHANNELS: config.channels_out,
                cb.STREAMS: self._streams,
                cb.INPUTS: self._inputs,
                cb.PULSE: self._pulse,
                cb.RATE: config.rate_hz,
                cb.IN_RATE: config.rate_in_hz,
                cb.OUT_RATE: config.rate_out_hz,
                cb.PUMP: pump.address,
                cb.RUN_PULSE: run_pulse.address,
            }
        )

    def _set_up_rings(self, largest_output: int) -> None:
        marks = power_of_two(len(self.input_ring) // max(self._config.block_frames, SHORTEST))
        marks = self._integers(max(MARKS, marks), 2)
        begins_with = self._schedule.frames - self._schedule.preroll_frames
        self._set(
            {
                cb.IN_RING: self.input_ring.ctypes.data,
                cb.IN_FRAMES: len(self.input_ring),
                cb.OUT_RING: self._floats(*self.played_ring.shape).ctypes.data,
                cb.OUT_FRAMES: len(self.played_ring),
                cb.PLAYED: self.played_ring.ctypes.data,
                cb.MARKS: marks.ctypes.data,
                cb.MARK_COUNT: len(marks),
                cb.LARGEST_OUTPUT: largest_output,
                cb.OUT_WRITTEN: begins_with,
                cb.INITIAL_FRAMES: begins_with,
                cb.RECORDS: self.records.ctypes.data if len(self.records) else 0,
                cb.RECORD_COUNT: len(self.records),
                cb.RECORD_BYTES: self.records.shape[1],
                cb.OUTPUT_BYTES: self._instances.output_bytes,
            }
        )

    def _set_up_pace(self, pulse_out: int) -> None:
        config, headroom = self._config, self._schedule.headroom
        block = config.block_frames or pulse_out
        self._set(
            {
                cb.BLOCK: block,
                cb.BLOCK_NS: round(block / config.rate_out_hz * 1e9),
                cb.DEADLINE_NS: round((headroom or block) / config.rate_out_hz * 1e9),
                cb.SPARE: headroom if headroom and not config.block_frames else -1,
            }
        )

    def _set_up_streams(self) -> None:
        config, resamplers = self._config, self._resamplers
        streams = self._integers(self._streams, self._inputs, cb.STREAM_FIELDS)
        lines = self._floats(self._streams, max(self._model_delay, 1))
        dry = self._floats(self._streams, self._pulse)
        for number, inputs in enumerate(streams):
            for place, feed in enumerate(inputs):
                feed[cb.CHANNEL] = (
                    config.input_channels[place] if config.input_channels else self._channel(number)
                )
                feed[cb.SLOT_IN] = self.slots[number, place].ctypes.data
                if resamplers.inward:
                    feed[cb.IN_RESAMPLER] = resamplers.inward[number * self._inputs + place].address
            stream = inputs[0]
            stream[cb.OUT_RESAMPLER] = resamplers.outward[number].address if resamplers.outward else 0
            stream[cb.DRY], stream[cb.DRY_DELAY_LINE] = dry[number].ctypes.data, lines[number].ctypes.data
            stream[cb.DRY_FRAMES] = self._model_delay
        self._set(
            {
                cb.STREAM: streams.ctypes.data,
                cb.FILLED: self._schedule.preroll,
                cb.INSTANCES: self._instances.address,
                cb.GAINS: self.gains.ctypes.data,
                cb.LARGEST: resamplers.largest,
                cb.SCRATCH: self._floats(resamplers.largest).ctypes.data,
            }
        )

    def _channel(self, stream: int) -> int:
        """What a stream of a model with one input of sound hears."""
        channels = self._config.channels
        return stream if channels.each else MIX if channels.index is None else channels.index

    def _set_up_times(self) -> None:
        times = self.histograms
        addresses = {
            cb.TOTAL_TIMES: times.total,
            cb.WAITING_TIMES: times.waiting,
            cb.COMPUTE_TIMES: times.compute,
        }
        for number in range(2):
            side = cb.SIDES + number * cb.SIDE_FIELDS
            addresses[side + cb.CALLBACK_TIMES] = times.callbacks[number]
            addresses[side + cb.INTERVAL_TIMES] = times.intervals[number]
        self._set({number: histogram.ctypes.data for number, histogram in addresses.items()})
        self.arrays += addresses.values()

    def _set_up_drift(self) -> None:
        target = self._schedule.frames - self._resamplers.inside_frames
        state = np.array([target, 0.0, target], np.float64)
        self.arrays.append(state)
        self.control_block[cb.DRIFT] = state.ctypes.data


def ring_frames(rate_hz: int, least_frames: int) -> int:
    """Frames of a ring that has room for ``RING_S``, and for as many as these; a power of two."""
    return power_of_two(max(int(RING_S * rate_hz), least_frames))


def power_of_two(count: int) -> int:
    """The smallest one that is not smaller."""
    return 1 << (count - 1).bit_length()
