"""Line: the memory of a native path from a device through a model and back."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pulse.errors import InputError
from pulse.facts import Array
from pulse.program.memory import aligned_bytes
from pulse.program.program import Program
from streaming.live.form import ENGINES, POLICIES, Behaviour, Form
from streaming.live.schedule import Course
from streaming.live.voices import Voices, sound_input, sound_output
from streaming.native import drift
from streaming.native import line_words as w
from streaming.native.callback import stream_callback
from streaming.native.events import Event
from streaming.native.histogram import new_histogram
from streaming.native.line import call_line, next_pulse, pump, run_pulse
from streaming.native.mixing import MIX
from streaming.native.resample import NativeResampler

RING_S = 4.0
"""What can wait on either side."""
MARKS = 1024
SHORTEST = 16
"""Frames of a block that is not known, for how many times of arrival there is room."""
RECORDS = 256
LARGEST = 4096
"""Frames that are resampled at a time."""


@dataclass(frozen=True)
class Record:
    """The outputs of one pulse: its number, when its last sample came, and when they were ready (monotonic ns).

    loads    how often states had been loaded before
    before   pulses that those were loaded with, and that came since then
    outputs  for each stream the outputs by name, frames of the model's delay included
    """

    pulse: int
    arrived_ns: int
    ready_ns: int
    loads: int
    before: int
    outputs: list[dict[str, Array]]


class Line:
    """The native path of one run.

    program    one input streams, and it is sound; the numba backend runs without Python
    form       what is connected
    behaviour  how it runs
    constants  the inputs that do not stream, by name
    Raises     InputError: a program, form or behaviour that do not fit each other

    A device calls the C function at ``callback_address`` with ``address`` as user data. ``Worker`` computes, or the
    callback does; ``Control`` changes what is heard.
    """

    def __init__(
        self,
        program: Program,
        form: Form,
        behaviour: Behaviour = Behaviour(),
        constants: Mapping[str, Array] | None = None,
    ) -> None:
        self.form, self.behaviour = form, behaviour
        self.constants = dict(constants or {})
        self.streams = form.channels.streams(form.channels_in)
        source = sound_input(program)
        sound = sound_output(program, source, behaviour.output) if form.channels_out else None
        if form.channels_out and sound is None:
            raise InputError(
                f"{program.model.title}: no output is sound at the rate of its input, so it plays nothing; leave out "
                "what it would play to, and take its frames"
            )
        self.model_delay = max(sound.delay if sound else 0, behaviour.reserve_frames)
        """Frames of the model that the sound is late by, the reserve included."""
        self._voices = Voices(program, self.streams, sound, self.constants, self.model_delay)
        self._successors: Voices | None = None
        self.native = self._voices.native
        """Whether no Python is needed to compute."""
        self.turn = threading.Lock()
        """Held while Python computes a pulse: who holds it finds the states between two pulses."""
        if behaviour.engine == "callback" and not self.native:
            raise InputError('engine "callback": only programs of the numba backend run there; take "worker"')
        self.words: NDArray[np.int64] = aligned_bytes(8 * w.LINE_WORDS).view(np.int64)
        self._kept: list[Array] = [self.words]
        self._events: list[Event] = []
        resampled_in = form.rate_in_hz != form.rate_hz
        resampled_out = form.channels_out > 0 and (form.two_clocks or form.rate_out_hz != form.rate_hz)
        self.inward = self._resamplers(form.rate_in_hz, form.rate_hz) if resampled_in else []
        self.outward = self._resamplers(form.rate_hz, form.rate_out_hz) if resampled_out else []
        course = Course(
            program.pulse,
            form.block_frames,
            form.rate_hz,
            form.rate_in_hz,
            form.rate_out_hz,
            self.inward[0].delay_frames if self.inward else 0,
            self.outward[0].delay_frames if self.outward else 0,
        )
        self.schedule = course.schedule(behaviour.headroom_s, behaviour.engine == "worker", form.two_clocks)
        self._set_up(course.in_device_frames(program.pulse))

    @property
    def program(self) -> Program:
        """The program that is heard."""
        return self.voices.program

    @property
    def voices(self) -> Voices:
        """What is heard."""
        if self._successors is not None and not self.words[w.NEXT_VOICES]:
            self._voices, self._successors = self._successors, None
        return self._voices

    @property
    def swapping(self) -> bool:
        """Whether other voices run beside those that are heard."""
        _ = self.voices
        return self._successors is not None

    def succeed(self, voices: Voices) -> None:
        """Keep these voices, if the order that they take over has been obeyed."""
        if voices.address in (int(self.words[w.NEXT_VOICES]), int(self.words[w.VOICES])):
            self._successors = voices

    @property
    def address(self) -> int:
        """Of the words: the callback's user data."""
        return self.words.ctypes.data

    @property
    def callback_address(self) -> int:
        """Of the callback's C function."""
        return stream_callback.address

    @property
    def deadline_s(self) -> float:
        """From the arrival of a pulse's last sample until its output must be ready."""
        return int(self.words[w.DEADLINE_NS]) / 1e9

    @property
    def delay_s(self) -> float:
        """Between a sample that comes in and the same that goes out, the device itself not counted."""
        lead, rate = self.schedule.lead, self.form.rate_hz
        waited = self.schedule.frames - self.schedule.lead_frames
        return waited / self.form.rate_out_hz + (lead + self.model_delay) / rate

    @property
    def delay_frames(self) -> int:
        """The same in frames of the device, rounded."""
        return round(self.delay_s * self.form.rate_out_hz)

    def pump(self) -> None:
        """Run all pulses that are there."""
        if self.native:
            call_line.call(pump.address, self.address)
            return
        there = True
        while there:
            with self.turn:
                there = self.take_pulse()
                if there:
                    self.run_pulse()

    def take_pulse(self) -> bool:
        """Take the next pulse into the slots; whether it is there. What ``run_pulse`` takes counts from now on."""
        return bool(next_pulse.call(self.address))

    def run_pulse(self) -> None:
        """Run the pulse in the slots."""
        if not self.native:
            self.voices.run(self.slots)
        call_line.call(run_pulse.address, self.address)

    def set_time(self, ns: int) -> None:
        """What time it is, for a line whose clock is held."""
        self.words[w.HELD_NOW_NS] = ns

    @property
    def memory(self) -> list[Array]:
        """All memory that is the line's own."""
        return self._kept

    def records(self) -> list[Record]:
        """The outputs of the pulses since the last call, if ``Behaviour.records``."""
        first, last = int(self.words[w.RECORDS_READ]), int(self.words[w.RECORDS_WRITTEN])
        found: list[Record] = []
        for number in range(first, last):
            row = self._records[number % len(self._records)]
            pulse, arrived, ready, loads, before = (int(value) for value in row[:40].view(np.int64))
            outputs = self.voices.outputs(row[w.RECORD_HEADER :])
            found.append(Record(pulse, arrived, ready, loads, before, outputs))
        self.words[w.RECORDS_READ] = last
        return found

    def wakes(self) -> Event:
        """A new event that each block of input sets, for a worker."""
        event = self._new_event()
        self.words[[w.WAIT, w.WAKE]] = event.to_read, event.to_write
        return event

    def notifies(self) -> Event:
        """A new event that each record sets."""
        event = self._new_event()
        self.words[w.NOTIFY] = event.to_write
        return event

    def close(self) -> None:
        """Give the descriptors back; neither a device nor a worker may use the line any more."""
        self.words[[w.WAKE, w.NOTIFY]] = -1
        for event in self._events:
            event.close()
        self._events.clear()

    def _inside_resamplers(self) -> float:
        """Frames of the output's device that resamplers hold after a pulse, on average: one makes whole frames."""
        form, inside = self.form, 0.0
        for one in self.inward[:1]:
            step = Fraction(one.rate_in_hz, one.rate_out_hz)
            more = one.delay_frames + 1 - step - (1 - Fraction(1, step.denominator)) / 2
            inside += float(more) * form.rate_out_hz / form.rate_in_hz
        for one in self.outward[:1]:
            inside += one.delay_frames * form.rate_out_hz / form.rate_hz - 0.5
        return inside

    def _new_event(self) -> Event:
        self._events.append(Event())
        return self._events[-1]

    def _resamplers(self, rate_in_hz: int, rate_out_hz: int) -> list[NativeResampler]:
        largest = max(LARGEST, self.voices.program.pulse)
        quality = self.behaviour.quality
        return [NativeResampler(rate_in_hz, rate_out_hz, quality, largest) for _ in range(self.streams)]

    def _buffer(self, *shape: int) -> NDArray[np.float32]:
        made = np.zeros(shape, np.float32)
        self._kept.append(made)
        return made

    def _histogram(self) -> NDArray[np.int64]:
        made = new_histogram()
        self._kept.append(made)
        return made

    def _set_up(self, pulse_out: int) -> None:
        form, words, pulse = self.form, self.words, self.program.pulse
        waiting = self.schedule.frames
        begins_with = waiting - self.schedule.lead_frames
        room = pulse_out + (pulse_out // 100 + 2 if self.outward else 0)
        in_frames = _power(max(int(RING_S * form.rate_in_hz), 4 * form.block_frames))
        out_frames = _power(max(int(RING_S * form.rate_out_hz), 4 * (room + waiting + form.block_frames)))
        mark_count = max(MARKS, _power(in_frames // max(form.block_frames, SHORTEST)))
        largest = max(LARGEST, pulse)
        self.heard = self._buffer(in_frames, form.channels_in)
        """The ring of input; what has been accepted stays for about ``RING_S``."""
        self.played = self._buffer(out_frames, max(form.channels_out, 1))
        """The ring of what was played, silence included."""
        self.slots = self._buffer(self.streams, pulse)
        """The pulse that is computed."""
        self.gains = self._buffer(6)
        self.gains[::2] = 1
        streams = np.zeros((self.streams, w.STREAM_WORDS), np.int64)
        marks = np.zeros((mark_count, 2), np.int64)
        record_bytes = w.RECORD_HEADER + self.streams * self.voices.output_bytes
        records = _power(max(int(RING_S * form.rate_hz / pulse), RECORDS)) if self.behaviour.records else 0
        self._records = np.zeros((records, record_bytes), np.uint8)
        self._kept += [streams, marks, self._records]
        lines = self._buffer(self.streams, max(self.model_delay, 1))
        dry = self._buffer(self.streams, pulse)
        for number, stream in enumerate(streams):
            stream[w.CHANNEL] = number if form.channels.each else MIX
            if form.channels.index is not None:
                stream[w.CHANNEL] = form.channels.index
            stream[w.SLOT_IN] = self.slots[number].ctypes.data
            stream[w.IN_RESAMPLER] = self.inward[number].address if self.inward else 0
            stream[w.OUT_RESAMPLER] = self.outward[number].address if self.outward else 0
            stream[w.DRY], stream[w.DRY_LINE] = dry[number].ctypes.data, lines[number].ctypes.data
            stream[w.DRY_FRAMES] = self.model_delay
        block_s = (form.block_frames or pulse_out) / form.rate_out_hz
        deadline_s = self.schedule.headroom / form.rate_out_hz if self.schedule.headroom else block_s
        for word, value in {
            w.HELD: int(self.behaviour.held_clock),
            w.ENGINE: ENGINES[self.behaviour.engine],
            w.POLICY: POLICIES[self.behaviour.policy],
            w.WAKE: -1,
            w.NOTIFY: -1,
            w.IN_CHANNELS: form.channels_in,
            w.IN_RING: self.heard.ctypes.data,
            w.IN_FRAMES: in_frames,
            w.OUT_CHANNELS: form.channels_out,
            w.OUT_RING: self._buffer(out_frames, max(form.channels_out, 1)).ctypes.data,
            w.OUT_FRAMES: out_frames,
            w.PLAYED: self.played.ctypes.data,
            w.MARKS: marks.ctypes.data,
            w.MARK_COUNT: mark_count,
            w.STREAMS: self.streams,
            w.STREAM: streams.ctypes.data,
            w.PULSE: pulse,
            w.ROOM: room,
            w.DEADLINE_NS: round(deadline_s * 1e9),
            w.GAINS: self.gains.ctypes.data,
            w.RECORDS: self._records.ctypes.data if self.behaviour.records else 0,
            w.RECORD_COUNT: records,
            w.RECORD_BYTES: record_bytes,
            w.LARGEST: largest,
            w.SCRATCH: self._buffer(largest).ctypes.data,
            w.RATE: form.rate_hz,
            w.BLOCK: form.block_frames or pulse_out,
            w.BLOCK_NS: round(block_s * 1e9),
            w.SPARE: self.schedule.headroom if not form.block_frames and self.schedule.headroom else -1,
            w.IN_RATE: form.rate_in_hz,
            w.OUT_RATE: form.rate_out_hz,
            w.OUTPUT_BYTES: self.voices.output_bytes,
            w.FILLED: self.schedule.lead,
            w.OUT_WRITTEN: begins_with,
            w.AGREED: begins_with,
            w.VOICES: self.voices.address,
            w.PUMP: pump.address,
            w.RUN_PULSE: run_pulse.address,
        }.items():
            words[word] = value
        self.total, self.waiting, self.compute = self._histogram(), self._histogram(), self._histogram()
        words[w.TOTAL_TIMES] = self.total.ctypes.data
        words[w.WAITING_TIMES] = self.waiting.ctypes.data
        words[w.COMPUTE_TIMES] = self.compute.ctypes.data
        self.callback_times = [self._histogram() for _ in range(2)]
        """Of the side that brings input, and of the one that only takes output."""
        self.intervals = [self._histogram() for _ in range(2)]
        for number in range(2):
            words[w.SIDES + number * w.SIDE_WORDS + w.CALLBACK_TIMES] = self.callback_times[
                number
            ].ctypes.data
            words[w.SIDES + number * w.SIDE_WORDS + w.INTERVAL_TIMES] = self.intervals[number].ctypes.data
        if form.two_clocks:
            target = self.schedule.frames - self._inside_resamplers()
            self.drift = np.array([target, 0.0, target], np.float64)
            assert len(self.drift) == drift.TARGET + 1
            self._kept.append(self.drift)
            words[w.DRIFT] = self.drift.ctypes.data


def _power(count: int) -> int:
    """The smallest power of two that is not smaller."""
    return 1 << (count - 1).bit_length()
