"""Session: one stream that takes any number of frames and gives all frames that are ready."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array, dtype_name
from pulse.ops.stateful import FAR, frames_at, most_frames
from pulse.program.program import Program, State, require_program
from pulse.pulsify.lengths import lag
from pulse.pulsify.model import Port
from streaming.reblocking import Reblocker
from streaming.snapshot import pack, unpack


@dataclass(frozen=True)
class Statistics:
    """What a session has done since it began or was reset.

    frames_in       frames of the symbol that have arrived at every input
    pending_frames  frames of the symbol that wait for a pulse to fill, at the input that has most of them
    pulses          pulses run
    frames_out      output name -> valid frames returned
    """

    frames_in: int
    pending_frames: int
    pulses: int
    frames_out: Mapping[str, int]


class Session:
    """One stream of a program: any number of frames in, all valid frames that are ready out.

    program       from ``pulse.stream(…)`` or ``PulsedModel.compile()``
    constants     the inputs that do not stream, by name
    check_finite  refuse NaN in what is pushed; infinities pass
    Raises        InputError: constants that do not fit

    Not safe for use by two threads at once. After an error in ``push`` or ``flush`` nothing has changed.
    """

    def __init__(
        self, program: Program, constants: Mapping[str, Array] | None = None, check_finite: bool = True
    ) -> None:
        self.program = require_program(program)
        self.check_finite = check_finite
        self._state: State = self.program.spawn(constants)
        self._inputs = {port.name: Reblocker(port) for port in program.inputs if port.streams}
        self._streaming = [port for port in program.outputs if port.streams]
        self._final = [port for port in program.outputs if not port.streams]
        self._received = dict.fromkeys(self._inputs, 0)
        self._sent = {port.name: 0 for port in self._streaming}
        self._unsure = {port.name: port for port in self._streaming if not _surely_there(port, program)}
        self._kept = {name: _no_frames(port) for name, port in self._unsure.items()}
        self._last: dict[str, Array] = {}
        self._flushed = False

    @property
    def frames_in(self) -> int:
        """Frames of the symbol that have arrived at every input."""
        return min(int(count / self._inputs[name].port.rate) for name, count in self._received.items())

    @property
    def pending_frames(self) -> int:
        """Frames of the symbol that wait for a pulse to fill, at the input that has most of them."""
        return max(int(queue.held / queue.port.rate) for queue in self._inputs.values())

    @property
    def pulses(self) -> int:
        """Pulses run."""
        return self._state.clock.pulse

    def statistics(self) -> Statistics:
        """The counters as they are now."""
        return Statistics(self.frames_in, self.pending_frames, self.pulses, dict(self._sent))

    def push(self, x: Array | Mapping[str, Array]) -> dict[str, Array]:
        """Take more of the stream.

        x        an array where one input streams, else input name -> array: the port's shape and dtype, any
                 number of frames (0 too) along its stream axis. An input that is left out gets none.
        returns  every streaming output: the valid frames that are ready, maybe 0, the caller's to keep
        Raises   InputError: a name, shape or dtype that does not fit, NaN, or the stream has been flushed
        """
        blocks = self._checked(x)
        pulses = self._pulses_with(blocks)
        for name, block in blocks.items():
            self._inputs[name].feed(block)
            self._received[name] += block.shape[self._inputs[name].axis]
        outputs = _Outputs(self._streaming, self._final, self.pulses, pulses)
        for _ in range(pulses):
            outputs.add(self._state.step({name: queue.take() for name, queue in self._inputs.items()}))
        for name in blocks:
            self._inputs[name].keep()
        self._last = outputs.last or self._last
        return self._ready(outputs)

    def check(self, x: Array | Mapping[str, Array]) -> None:
        """Raise the InputError that ``push`` would raise."""
        self._checked(x)

    def flush(self, fill: float = 0.0) -> dict[str, Array]:
        """End the stream: the frames that are still to come, and the outputs that are known only now.

        fill     pads the last pulse; no frame that is returned depends on it
        returns  every output: the rest of those that stream, the whole of those that do not
        Raises   InputError: the inputs end at different moments, or the model needs another length; then the
                 stream goes on. Also if it has been flushed before.
        """
        self._check_open("flush")
        if self._final and self.program.steps(self.frames_in) == 0:
            names = ", ".join(port.name for port in self._final)
            raise InputError(f"{names}: not known in a stream of 0 frames; push some first")
        done = self.pulses
        results = self._state.flush({name: queue.rest() for name, queue in self._inputs.items()}, fill)
        self._flushed = True
        outputs = _Outputs(self._streaming, self._final, done, len(results))
        for result in results:
            outputs.add(result)
        self._last = outputs.last or self._last
        for queue in self._inputs.values():
            queue.clear()
        return {**self._ready(outputs), **{port.name: self._whole(port) for port in self._final}}

    def reset(self) -> None:
        """Begin a new stream; the constants stay."""
        self._state.reset()
        for queue in self._inputs.values():
            queue.clear()
        self._received = dict.fromkeys(self._received, 0)
        self._sent = dict.fromkeys(self._sent, 0)
        self._kept = {name: _no_frames(port) for name, port in self._unsure.items()}
        self._last, self._flushed = {}, False

    def snapshot(self) -> bytes:
        """All of the stream, the frames that wait included."""
        counters = [int(self._flushed), *self._received.values(), *self._sent.values()]
        held = [queue.held for queue in self._inputs.values()]
        held += [self._kept[name].shape[port.axis or 0] for name, port in self._unsure.items()]
        waiting = [queue.dump() for queue in self._inputs.values()]
        waiting += [array.tobytes() for array in self._kept.values()]
        last = [self._last[port.name].tobytes() for port in self._final if self._last]
        return pack([*counters, *held], [self._state.snapshot(), *waiting, *last])

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same model, pulse and backend. InputError: nothing changed."""
        numbers, (state, *chunks) = unpack(snapshot)
        inputs, outputs = list(self._inputs.values()), self._final
        held = numbers[1 + len(inputs) + len(self._streaming) :]
        kept = dict(zip(self._unsure, held[len(inputs) :]))
        sizes = [queue.nbytes(frames) for queue, frames in zip(inputs, held)]
        sizes += [_frames_bytes(self._unsure[name], frames) for name, frames in kept.items()]
        finals = [int(np.prod(port.shape)) * port.dtype.itemsize for port in outputs]
        found = [len(chunk) for chunk in chunks]
        if len(held) != len(inputs) + len(self._unsure) or found not in (sizes, sizes + finals):
            raise InputError("the snapshot belongs to another model or pulse; take it from the same program")
        self._state.restore(state)
        self._flushed = bool(numbers[0])
        self._received = dict(zip(self._received, numbers[1:]))
        self._sent = dict(zip(self._sent, numbers[1 + len(inputs) :]))
        for queue, chunk, frames in zip(inputs, chunks, held):
            queue.load(chunk, frames)
        self._last = {
            port.name: np.frombuffer(chunk, port.dtype).reshape(port.shape)
            for port, chunk in zip(outputs, chunks[len(sizes) :])
        }
        for (name, frames), chunk in zip(kept.items(), chunks[len(inputs) :]):
            port = self._unsure[name]
            self._kept[name] = np.frombuffer(chunk, port.dtype).reshape(_shape(port, frames))

    def _ready(self, outputs: "_Outputs") -> dict[str, Array]:
        """What the pulses gave, as far as it is sure that the stream is so long; the rest is kept."""
        ready: dict[str, Array] = {}
        for port in self._streaming:
            array, axis = outputs.arrays[port.name], port.axis or 0
            unsure = port.name in self._unsure
            if unsure:
                array = np.concatenate([self._kept[port.name], array], axis)
            if unsure or self._flushed:
                sure = max(0, self._total(port) - self._sent[port.name])
                whole, array = array, frames_at(array, axis, 0, sure)
                if unsure:
                    self._kept[port.name] = frames_at(whole, axis, sure, whole.shape[axis]).copy()
            self._sent[port.name] += array.shape[axis]
            ready[port.name] = array
        return ready

    def _total(self, port: Port) -> int:
        """The frames of an output that surely exist, after what the model has had."""
        end = self._state.clock.end
        frames = self.pulses * self.program.pulse if end is None else end
        return max(0, port.length.eval({self.program.model.symbol: frames}))

    def _whole(self, port: Port) -> Array:
        """An output that does not stream: all of it, or its last frames where it has an axis of time."""
        value = self._last[port.name].copy()
        if port.axis is None:
            return value
        return frames_at(value, port.axis, port.frames - self._total(port), port.frames)

    def _checked(self, x: Array | Mapping[str, Array]) -> dict[str, Array]:
        self._check_open("push")
        blocks = self._named(x)
        for name, block in blocks.items():
            queue = self._inputs.get(name)
            if queue is None:
                raise InputError(f"{name} is no streaming input; push {self._wanted()}")
            port, axis = queue.port, queue.axis
            if block.ndim != len(port.shape) or block.shape != queue.shape(block.shape[axis]):
                raise InputError(f"{name}: expected {_form(port)}, got shape {list(block.shape)}")
            if block.dtype != port.dtype:
                raise InputError(
                    f"{name}: expected {_form(port)}, got {dtype_name(block.dtype)}; convert it with "
                    f".astype(np.{port.dtype.name})"
                )
            if self.check_finite and np.issubdtype(block.dtype, np.floating):
                self._refuse_nan(name, block)
        self._check_limit(blocks)
        return blocks

    def _pulses_with(self, blocks: Mapping[str, Array]) -> int:
        """How many pulses can run with these blocks added."""
        new = {name: block.shape[self._inputs[name].axis] for name, block in blocks.items()}
        return min((queue.held + new.get(name, 0)) // queue.frames for name, queue in self._inputs.items())

    def _check_limit(self, blocks: Mapping[str, Array]) -> None:
        limit = self.program.limit
        if limit is None:
            return
        received = dict(self._received)
        for name, block in blocks.items():
            received[name] += block.shape[self._inputs[name].axis]
        if max(count / self._inputs[name].port.rate for name, count in received.items()) > limit:
            raise InputError(
                f"the model takes at most {limit} frames of {self.program.model.symbol.name} and has had "
                f"{self.frames_in}: push fewer, then flush and reset"
            )

    def _refuse_nan(self, name: str, block: Array) -> None:
        bad = np.isnan(block)
        if bad.any():
            axis = self._inputs[name].axis
            frame = self._received[name] + int(
                np.argmax(bad.any(tuple(a for a in range(bad.ndim) if a != axis)))
            )
            raise InputError(
                f"{name}: NaN at frame {frame}; replace it, or let it pass: Session(…, check_finite=False)"
            )

    def _named(self, x: Array | Mapping[str, Array]) -> dict[str, Array]:
        if isinstance(x, Mapping):
            return {name: np.asarray(array) for name, array in x.items()}
        if len(self._inputs) != 1:
            raise InputError(f"{len(self._inputs)} inputs stream: push them by name, {self._wanted()}")
        return {next(iter(self._inputs)): np.asarray(x)}

    def _wanted(self) -> str:
        return "; ".join(f"{queue.port.name}: {_form(queue.port)}" for queue in self._inputs.values())

    def _check_open(self, call: str) -> None:
        if self._flushed:
            raise InputError(f"{call} after flush: the stream has ended; begin a new one with reset()")


class _Outputs:
    """Where the frames of some pulses are gathered, without those of the delay."""

    def __init__(self, streaming: list[Port], final: list[Port], done: int, pulses: int) -> None:
        self._final = [port.name for port in final]
        self._places: list[tuple[Port, int]] = []
        self.arrays: dict[str, Array] = {}
        self.last: dict[str, Array] = {}
        self._number = 0
        for port in streaming:
            drop = min(max(0, port.delay - done * port.frames), pulses * port.frames)
            shape: list[Any] = list(port.shape)
            shape[port.axis or 0] = pulses * port.frames - drop
            self.arrays[port.name] = np.empty(shape, port.dtype)
            self._places.append((port, drop))

    def add(self, result: Mapping[str, Array]) -> None:
        """The outputs of the next pulse."""
        for port, drop in self._places:
            axis = port.axis or 0
            start = self._number * port.frames - drop
            skipped = min(port.frames, max(0, -start))
            valid = frames_at(result[port.name], axis, skipped, port.frames)
            frames_at(self.arrays[port.name], axis, start + skipped, start + port.frames)[...] = valid
        if self._final:
            self.last = {name: result[name] for name in self._final}
        self._number += 1


def _surely_there(port: Port, program: Program) -> bool:
    """Whether every frame after the delay exists, whatever the length of the stream turns out to be."""
    sure = lag(port.length, port.rate, program.model.symbol, program.pulse)
    return sure is not None and sure <= port.delay and most_frames(port.length) == FAR


def _shape(port: Port, frames: int) -> list[int]:
    return [frames if axis == port.axis else size for axis, size in enumerate(port.shape)]


def _no_frames(port: Port) -> Array:
    return np.empty(_shape(port, 0), port.dtype)


def _frames_bytes(port: Port, frames: int) -> int:
    return int(np.prod(_shape(port, frames))) * port.dtype.itemsize


def _form(port: Port) -> str:
    """A block's shape and dtype, the stream axis marked: [1, any, 80] f32."""
    dims = ["any" if axis == port.axis else str(size) for axis, size in enumerate(port.shape)]
    return f"[{', '.join(dims)}] {dtype_name(port.dtype)}"
