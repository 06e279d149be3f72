"""Memory: what compiled code finds at the addresses in the words of a pipeline."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pulse.facts import Array
from pulse.program.memory import aligned, aligned_bytes
from pulse.uncopied import Uncopied
from streaming.live.form import ENGINES, POLICIES, Behaviour, Form
from streaming.live.instances import Instances
from streaming.live.resamplers import Resamplers
from streaming.live.schedule import Schedule
from streaming.native import line_words as w
from streaming.native.histogram import new_histogram
from streaming.native.mixing import MIX
from streaming.native.pipeline import pump, run_pulse

RING_S = 4.0
"""What can wait on either side."""
MARKS = 1024
SHORTEST = 16
"""Frames of a block that is not known, for how many times of arrival there is room."""
RECORDS = 256


@dataclass(frozen=True)
class Times:
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


class PipelineMemory(Uncopied):
    """The words of a pipeline, set up, and all that they point to.

    model_delay  frames of the model that the sound is late by

    heard    the ring of input; what has been accepted stays for about ``RING_S``
    played   the ring of what was played, silence included
    slots    the pulse that is computed: for each stream and input its samples, as a packed pulse has them
    gains    model and bypass now, then what they are to become, then what they are becoming
    records  outputs for Python, as bytes
    times    how long things took
    arrays   all of it
    """

    instead = "it holds addresses of this process; make another one"

    def __init__(
        self,
        form: Form,
        behaviour: Behaviour,
        schedule: Schedule,
        resamplers: Resamplers,
        instances: Instances,
        model_delay: int,
    ) -> None:
        self._form, self._behaviour, self._schedule = form, behaviour, schedule
        self._resamplers, self._instances, self._streams = resamplers, instances, len(instances.states)
        self._pulse, self._model_delay = instances.program.pulse, model_delay
        self.words: NDArray[np.int64] = aligned_bytes(8 * w.LINE_WORDS).view(np.int64)
        self.arrays: list[Array] = [self.words]
        self.times = Times()
        pulse_out = resamplers.course.in_device_frames(self._pulse)
        room = pulse_out + (pulse_out // 100 + 2 if resamplers.outward else 0)
        in_frames = ring_frames(form.rate_in_hz, 4 * form.block_frames)
        out_frames = ring_frames(form.rate_out_hz, 4 * (room + schedule.frames + form.block_frames))
        self.heard = self._floats(in_frames, form.channels_in)
        self.played = self._floats(out_frames, max(form.channels_out, 1))
        self._inputs = len(instances.inputs)
        packed = self._floats(self._streams, self._inputs, aligned(4 * self._pulse) // 4)
        self.slots = packed[:, :, : self._pulse]
        self.gains = self._floats(6)
        self.gains[::2] = 1
        record_bytes = w.RECORD_HEADER + self._streams * instances.output_bytes
        waiting = in_frames * form.rate_hz // (form.rate_in_hz * self._pulse) + 2
        records = power_of_two(max(waiting, RECORDS))
        self.records = np.zeros((records if behaviour.records else 0, record_bytes), np.uint8)
        self.arrays.append(self.records)
        self._set_up_form()
        self._set_up_rings(room)
        self._set_up_pace(pulse_out)
        self._set_up_streams()
        self._set_up_times()
        if form.two_clocks:
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
        for word, value in values.items():
            self.words[word] = value

    def _set_up_form(self) -> None:
        form, behaviour = self._form, self._behaviour
        self._set(
            {
                w.HELD: int(behaviour.held_clock),
                w.ENGINE: ENGINES[behaviour.engine],
                w.POLICY: POLICIES[behaviour.policy],
                w.WAKE: -1,
                w.IN_CHANNELS: form.channels_in,
                w.OUT_CHANNELS: form.channels_out,
                w.STREAMS: self._streams,
                w.INPUTS: self._inputs,
                w.PULSE: self._pulse,
                w.RATE: form.rate_hz,
                w.IN_RATE: form.rate_in_hz,
                w.OUT_RATE: form.rate_out_hz,
                w.PUMP: pump.address,
                w.RUN_PULSE: run_pulse.address,
            }
        )

    def _set_up_rings(self, room: int) -> None:
        marks = power_of_two(len(self.heard) // max(self._form.block_frames, SHORTEST))
        marks = self._integers(max(MARKS, marks), 2)
        begins_with = self._schedule.frames - self._schedule.lead_frames
        self._set(
            {
                w.IN_RING: self.heard.ctypes.data,
                w.IN_FRAMES: len(self.heard),
                w.OUT_RING: self._floats(*self.played.shape).ctypes.data,
                w.OUT_FRAMES: len(self.played),
                w.PLAYED: self.played.ctypes.data,
                w.MARKS: marks.ctypes.data,
                w.MARK_COUNT: len(marks),
                w.ROOM: room,
                w.OUT_WRITTEN: begins_with,
                w.AGREED: begins_with,
                w.RECORDS: self.records.ctypes.data if len(self.records) else 0,
                w.RECORD_COUNT: len(self.records),
                w.RECORD_BYTES: self.records.shape[1],
                w.OUTPUT_BYTES: self._instances.output_bytes,
            }
        )

    def _set_up_pace(self, pulse_out: int) -> None:
        form, headroom = self._form, self._schedule.headroom
        block = form.block_frames or pulse_out
        self._set(
            {
                w.BLOCK: block,
                w.BLOCK_NS: round(block / form.rate_out_hz * 1e9),
                w.DEADLINE_NS: round((headroom or block) / form.rate_out_hz * 1e9),
                w.SPARE: headroom if headroom and not form.block_frames else -1,
            }
        )

    def _set_up_streams(self) -> None:
        form, resamplers = self._form, self._resamplers
        streams = self._integers(self._streams, self._inputs, w.STREAM_WORDS)
        lines = self._floats(self._streams, max(self._model_delay, 1))
        dry = self._floats(self._streams, self._pulse)
        for number, inputs in enumerate(streams):
            for place, feed in enumerate(inputs):
                feed[w.CHANNEL] = form.heard[place] if form.heard else self._channel(number)
                feed[w.SLOT_IN] = self.slots[number, place].ctypes.data
                if resamplers.inward:
                    feed[w.IN_RESAMPLER] = resamplers.inward[number * self._inputs + place].address
            stream = inputs[0]
            stream[w.OUT_RESAMPLER] = resamplers.outward[number].address if resamplers.outward else 0
            stream[w.DRY], stream[w.DRY_DELAY_LINE] = dry[number].ctypes.data, lines[number].ctypes.data
            stream[w.DRY_FRAMES] = self._model_delay
        self._set(
            {
                w.STREAM: streams.ctypes.data,
                w.FILLED: self._schedule.lead,
                w.INSTANCES: self._instances.address,
                w.GAINS: self.gains.ctypes.data,
                w.LARGEST: resamplers.largest,
                w.SCRATCH: self._floats(resamplers.largest).ctypes.data,
            }
        )

    def _channel(self, stream: int) -> int:
        """What a stream of a model with one input of sound hears."""
        channels = self._form.channels
        return stream if channels.each else MIX if channels.index is None else channels.index

    def _set_up_times(self) -> None:
        times = self.times
        addresses = {
            w.TOTAL_TIMES: times.total,
            w.WAITING_TIMES: times.waiting,
            w.COMPUTE_TIMES: times.compute,
        }
        for number in range(2):
            side = w.SIDES + number * w.SIDE_WORDS
            addresses[side + w.CALLBACK_TIMES] = times.callbacks[number]
            addresses[side + w.INTERVAL_TIMES] = times.intervals[number]
        self._set({word: histogram.ctypes.data for word, histogram in addresses.items()})
        self.arrays += addresses.values()

    def _set_up_drift(self) -> None:
        target = self._schedule.frames - self._resamplers.inside_frames
        state = np.array([target, 0.0, target], np.float64)
        self.arrays.append(state)
        self.words[w.DRIFT] = state.ctypes.data


def ring_frames(rate_hz: int, least_frames: int) -> int:
    """Frames of a ring that has room for ``RING_S``, and for as many as these; a power of two."""
    return power_of_two(max(int(RING_S * rate_hz), least_frames))


def power_of_two(count: int) -> int:
    """The smallest one that is not smaller."""
    return 1 << (count - 1).bit_length()
