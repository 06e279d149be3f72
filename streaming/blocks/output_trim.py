"""OutputTrim: trims the machine's results to valid frames, without the delay."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array, DType
from pulse.interface import Port
from pulse.ops.clock import frames_at, max_frames
from pulse.program.streams.state import StreamedProgram
from pulse.pulsify.lengths import lag
from pulse.support.bounds import UNBOUNDED

TrimMark = tuple[int, int | None, Mapping[str, int], dict[str, Array], dict[str, Array]]


class OutputTrim:
    """The outputs of one stream.

    program    the program of the stream
    pulses     the number of pulses whose results have been taken
    end        frames of the symbol in the whole stream; None until it has ended
    completed  zero frames appended to the input to complete the stream; the outputs for them are dropped
    whole      if there are any, the longest valid length of the input without them
    """

    def __init__(self, program: StreamedProgram) -> None:
        self.program = program
        self._streaming = [port for port in program.outputs if port.streams]
        self._layouts = [_Layout.of(port) for port in self._streaming]
        self._frames = [(port.name, port.frames) for port in self._streaming]
        self._final = [port for port in program.outputs if not port.streams]
        self._unsure = {port.name: port for port in self._streaming if not _always_exists(port, program)}
        delay_pulses = [-(-port.delay // port.frames) for port in self._streaming]
        self._passthrough_from = None if self._unsure or self._final else max(delay_pulses, default=0)
        """The number of the pulse from which on results are delivered unchanged."""
        self.reset()

    def reset(self) -> None:
        """Begin a new stream."""
        self.pulses = 0
        self.end: int | None = None
        self.completed = self.whole = 0
        self._sent_frames: Mapping[str, int] = {port.name: 0 for port in self._streaming}
        self._passthrough_pulses = 0
        """Pulses whose results were delivered unchanged and are not yet counted in ``_sent_frames``."""
        self._held_back = {name: np.empty(_shape(port, 0), port.dtype) for name, port in self._unsure.items()}
        self._last: dict[str, Array] = {}

    @property
    def sent_frames(self) -> Mapping[str, int]:
        """Output name -> valid frames returned."""
        if not self._passthrough_pulses:
            return self._sent_frames
        return {
            name: self._sent_frames[name] + self._passthrough_pulses * frames for name, frames in self._frames
        }

    def begin_at(self, pulses: int) -> None:
        """Begin within a stream, after this many delivered pulses."""
        self.reset()
        self.pulses = pulses
        self._sent_frames = {port.name: max(pulses * port.frames - port.delay, 0) for port in self._streaming}

    def end_at(self, end: int | None, completed: int = 0, whole: int = 0) -> None:
        """End the stream after this many frames of the symbol, of which the last are zeros that completed it."""
        self.end, self.completed, self.whole = end, completed, whole

    def mark(self) -> TrimMark:
        """Return the present state for ``rewind``; its arrays and dictionaries are not changed later."""
        return self.pulses, self.end, self.sent_frames, self._held_back, self._last

    def rewind(self, mark: TrimMark) -> None:
        """Restore the state at a mark."""
        self.pulses, self.end, self._sent_frames, self._held_back, self._last = mark
        self.completed = 0
        self._passthrough_pulses = 0

    def take(self, results: Iterable[Mapping[str, Array]], count: int) -> dict[str, Array]:
        """Take the results of the next ``count`` pulses, and return the frames that they make ready.

        results  output name -> array of the port's shape, each valid until the next
        Returns  every streaming output: frames known to be in the stream, perhaps 0, which the caller owns
        """
        blocks = _JoinedPulses(self._layouts, self.pulses, count)
        result: Mapping[str, Array] = {}
        for index, result in enumerate(results):
            blocks.add(index, result)
        if count and self._final:
            self._last = {port.name: result[port.name].copy() for port in self._final}
        self.pulses += count
        ready = {port.name: self._take_certain(port, blocks.arrays[port.name]) for port in self._streaming}
        sent_frames = self.sent_frames
        self._sent_frames = {
            port.name: sent_frames[port.name] + ready[port.name].shape[port.axis or 0]
            for port in self._streaming
        }
        self._passthrough_pulses = 0
        return ready

    @property
    def is_passthrough(self) -> bool:
        """Whether the results of the next pulse are delivered unchanged: all are valid, and no frame is held back."""
        return (
            self._passthrough_from is not None and self.pulses >= self._passthrough_from and self.end is None
        )

    def count_pulses(self, pulses: int) -> None:
        """Count pulses whose results were delivered unchanged and will not be undone."""
        self._passthrough_pulses += pulses
        self.pulses += pulses

    def check_end(self, frames: int) -> None:
        """Raise InputError if a stream of this many frames leaves an output undefined."""
        if self._final and self.program.steps(frames) == 0:
            names = ", ".join(port.name for port in self._final)
            raise InputError(f"{names}: no value in a stream of 0 frames; push some first")

    def final_outputs(self) -> dict[str, Array]:
        """Return the outputs that do not stream, known when the stream has ended."""
        return {port.name: self._final_output(port) for port in self._final}

    def silent_outputs(self) -> dict[str, Array]:
        """Return zeros for the output of a lost pulse."""
        return {port.name: np.zeros(port.shape, port.dtype) for port in self.program.outputs}

    @property
    def held_frames(self) -> list[int]:
        """The number of frames held back for each output whose newest frames may be after the end."""
        return [array.shape[self._unsure[name].axis or 0] for name, array in self._held_back.items()]

    def dump(self) -> list[bytes]:
        """Return the frames that are held back, then the outputs that do not stream, if a pulse has run."""
        last = [self._last[port.name].tobytes() for port in self._final if self._last]
        return [*(array.tobytes() for array in self._held_back.values()), *last]

    def nbytes(self, held_frames: Sequence[int]) -> list[list[int]]:
        """Return the possible sizes of ``dump`` with this many held frames: before the first pulse, and after."""
        sizes = [
            _nbytes(_shape(port, frames), port) for port, frames in zip(self._unsure.values(), held_frames)
        ]
        return [sizes, sizes + [_nbytes(port.shape, port) for port in self._final]]

    def load(self, sent_frames: Sequence[int], held_frames: Sequence[int], sections: Sequence[bytes]) -> None:
        """Restore ``sent_frames``, ``held_frames`` and the bytes of ``dump``; the clock has ``pulses`` and ``end``."""
        self._sent_frames, self._passthrough_pulses = dict(zip(self._sent_frames, sent_frames)), 0
        for port, frames, section in zip(self._unsure.values(), held_frames, sections):
            held = np.frombuffer(section, port.dtype).reshape(_shape(port, frames))
            self._held_back = {**self._held_back, port.name: held}
        self._last = {
            port.name: np.frombuffer(section, port.dtype).reshape(port.shape)
            for port, section in zip(self._final, sections[len(held_frames) :])
        }

    def _take_certain(self, port: Port, array: Array) -> Array:
        """Return the next frames known to be in the stream; keep the rest."""
        axis, unsure = port.axis or 0, port.name in self._unsure
        if unsure:
            array = np.concatenate([self._held_back[port.name], array], axis)
        if unsure or self.end is not None:
            sure = max(0, self._known_total(port) - self.sent_frames[port.name])
            whole, array = array, frames_at(array, axis, 0, sure)
            if unsure:
                later = frames_at(whole, axis, sure, whole.shape[axis]).copy()
                self._held_back = {**self._held_back, port.name: later}
        return array

    def _known_total(self, port: Port) -> int:
        """Return the number of frames of an output known to exist, given the input so far."""
        frames = self.pulses * self.program.pulse if self.end is None else self.end
        length = self._length(port, frames)
        if not self.completed:
            return length
        given_frames = frames - self.completed - self.whole
        return min(length, self._length(port, self.whole) + ceil(given_frames * port.rate))

    def _length(self, port: Port, frames: int) -> int:
        return max(0, port.length.eval({self.program.model.symbol: frames}))

    def _final_output(self, port: Port) -> Array:
        """Return an output that does not stream: all of it, or its last frames if it has a time axis."""
        value = self._last[port.name].copy()
        if port.axis is None:
            return value
        return frames_at(value, port.axis, port.frames - self._known_total(port), port.frames)


class _Layout(NamedTuple):
    """The layout of a streaming output: shapes and slices of axes before the stream axis, and the shape after it."""

    name: str
    delay: int
    frames: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    dtype: DType
    axes: tuple[slice, ...]

    @classmethod
    def of(cls, port: Port) -> "_Layout":
        """Return the layout of a port."""
        axis, shape = port.axis or 0, port.shape
        axes = (slice(None),) * axis
        return cls(port.name, port.delay, port.frames, shape[:axis], shape[axis + 1 :], port.dtype, axes)


class _JoinedPulses:
    """The joined frames of some pulses, without those of the delay."""

    def __init__(self, streaming: list["_Layout"], pulses_before: int, pulses: int) -> None:
        self.arrays: dict[str, Array] = {}
        self._targets: list[tuple[str, int, int, Array, tuple[slice, ...]]] = []
        for name, delay, frames, before, after, dtype, axes in streaming:
            drop = min(max(0, delay - pulses_before * frames), pulses * frames)
            array: Array = np.empty((*before, pulses * frames - drop, *after), dtype)
            self.arrays[name] = array
            self._targets.append((name, frames, -drop, array, axes))

    def add(self, index: int, result: Mapping[str, Array]) -> None:
        """Add the outputs of a pulse, counted from 0."""
        for name, frames, first, array, before in self._targets:
            start, valid = first + index * frames, result[name]
            if start < 0:
                valid = valid[(*before, slice(min(frames, -start), None))]
            array[(*before, slice(max(0, start), max(0, start + frames)))] = valid


def _always_exists(port: Port, program: StreamedProgram) -> bool:
    """Return whether every frame after the delay exists, whatever the length of the stream."""
    sure = lag(port.length, port.rate, program.model.symbol, program.pulse)
    return sure is not None and sure <= port.delay and max_frames(port.length) == UNBOUNDED


def _shape(port: Port, frames: int) -> list[Any]:
    return [frames if axis == port.axis else size for axis, size in enumerate(port.shape)]


def _nbytes(shape: Sequence[int], port: Port) -> int:
    return prod(shape) * port.dtype.itemsize
