"""State: one stream of a program."""

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Protocol

import numpy as np

from pulse.errors import Fault, FaultError, InputError
from pulse.facts import Array
from pulse.interface import Interface, Port
from pulse.ops.check import Site
from pulse.ops.clock import Clock
from pulse.program.machine.array_step import ArrayStep, StreamFlags
from pulse.program.streams.ending import complete_inputs, stream_end
from pulse.program.streams.feeds import (
    Feed,
    continue_with_zeros,
    copy_constants,
    filled_pulse,
    frame_counts,
    named_pulses,
    named_rest,
    output_arrays,
    padded_pulses,
)
from pulse.support.blake2 import blake2b
from pulse.support.wording import count_of

_HEADER = struct.Struct("<8s16sqq")
_MAGIC = b"pulse/1\0"

StateMark = tuple[Any, tuple[int, int | None], list[Array]]
"""What ``rewind`` needs: a stream's memory in the backend's form; pulse and end of its clock; the fetched wires."""


class StreamedProgram(Protocol):
    """What streams read of their ``Program``, which imports this module."""

    model: Interface
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    pulse: int
    limit: int | None

    @cached_property
    def fingerprint(self) -> bytes: ...
    def steps(self, end: int) -> int: ...


class State(ABC):
    """One stream. Not safe for use by two threads at once.

    min_pulses_to_mark  the number of pulses that take so long that one ``mark`` is negligible

    A copied or unpickled state is an independent stream of the same program that continues from here.

    After an exception in a call, even an asynchronous one (KeyboardInterrupt), either the stream is unchanged, or every
    further call raises InputError until ``reset`` or ``restore``.
    """

    min_pulses_to_mark = 0

    def __init__(self, program: StreamedProgram, constants: Feed | None) -> None:
        self.program = program
        self.clock = Clock(program.model.symbol)
        self.constants = copy_constants(program.inputs, constants or {})
        self._streaming = [port for port in program.inputs if port.streams]
        self._port_types = [(port.name, port.shape, port.dtype) for port in self._streaming]
        self._output_ports = {port.name: port for port in program.outputs}
        self.stops_at_faults = True
        """Whether a pulse with faults raises FaultError; otherwise faults are only counted."""
        self.counts_faults = False
        """Whether the program counts faults at all."""
        self.takes_nan_padding = True
        """Whether frames after the end may be NaN; False if an op may raise on a value computed from them, such as an
        index.
        """
        self._total: memoryview[int] | None = None
        """The word that counts all faults; None if the program has no such word."""
        self._flags = StreamFlags.new()
        self.fetched: list[Array] = []
        """The fetched wires of the last pulse."""

    @property
    def changing(self) -> bool:
        """Whether a call is changing the stream, or was interrupted by an exception while it did."""
        return self._flags.changing != 0

    @changing.setter
    def changing(self, changing: bool) -> None:
        self._flags.changing = changing

    @abstractmethod
    def _run(self, feed: Feed) -> dict[str, Array]:
        """Run one pulse on checked inputs; set ``changing`` before anything that the next pulse reads changes."""

    def _run_into(self, feed: Feed, outputs: dict[str, Array]) -> dict[str, Array]:
        """Do ``_run`` into arrays of the outputs' shapes and dtypes."""
        for name, array in self._run(feed).items():
            outputs[name][...] = array
        return outputs

    @cached_property
    def try_step(self) -> ArrayStep:
        """Run ``step`` as one compiled call; the caller then looks for faults.

        The arguments are ``feed``, ``outputs`` or None, and whether to do nothing if an input has NaN. The result is
        None if nothing has changed: the stream takes no pulse now, an array is not C-contiguous or not exactly as its
        port requires, or the backend has no compiled call. ``step`` then reports the reason, or returns the result.
        """
        return lambda feed, outputs, refuses_nan: None

    @abstractmethod
    def _clear(self) -> None:
        """Reset the stream to its state before the first pulse."""

    @abstractmethod
    def _set_end(self) -> None:
        """Update the memory after the stream's end was set in the clock."""

    @property
    def has_faulted(self) -> bool:
        """Whether the stream has had a fault."""
        return False

    def take_faults(self) -> int:
        """Return the number of faults since the last call; they no longer stop the stream."""
        return 0

    def _counts(self) -> Iterable[tuple[Site, int]]:
        """Return every fault check with its count."""
        return ()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults of the stream: values for which a node has no result, such as an index outside its table."""
        return tuple(check.fault(node, op, count) for (node, op, check), count in self._counts() if count)

    @abstractmethod
    def _memory_bytes(self) -> bytes:
        """Return all memory of the stream."""

    @abstractmethod
    def _set_memory_bytes(self, memory: bytes) -> None:
        """Restore what ``_memory_bytes`` returned; sets ``changing``.

        Raises InputError: the size differs; before anything changes
        """

    @abstractmethod
    def _copy_memory(self) -> Any:
        """Return a copy of all memory of the stream, for ``_restore_memory``."""

    @abstractmethod
    def _restore_memory(self, memory: Any) -> None:
        """Restore what ``_copy_memory`` returned."""

    def step(self, feed: Feed | Array, outputs: Feed | Array | None = None) -> dict[str, Array]:
        """Run one pulse.

        feed     input name -> array of the port's shape and dtype; an array if one input streams. Not changed, unless
                 one of ``outputs`` overlaps it
        outputs  output name -> array of the port's shape and dtype to write to; an array if there is one output. After
                 an exception its contents are undefined. By default new arrays, owned by the caller
        Returns  the arrays by name. Drop the first ``delay`` frames of a stream; ``streaming.Session`` does so.
        Raises   InputError: names, shape or dtype differ, or the stream has ended; the state is then unchanged.
                 FaultError: a node has no result for some value; only reset and restore are possible after it
        """
        counter = self.clock.word
        pulse = counter[0]
        try:
            results = self.try_step(feed, outputs, False)
            if results is None:
                inputs = self._check(feed)
                arrays = None if outputs is None else output_arrays(self._output_ports, outputs)
                self.check_open()
                results = self.advance(inputs, True, arrays)
            elif self.counts_faults:
                self.raise_faults()
            return results
        except (FaultError, InputError):
            raise
        except BaseException:
            self.changing = self.changing or counter[0] != pulse
            raise

    def advance(
        self, feed: Feed, raises: bool = True, outputs: dict[str, Array] | None = None
    ) -> dict[str, Array]:
        """Run ``step`` for a pulse that has been checked, or that ``end`` returned.

        raises   whether faults raise FaultError
        outputs  arrays to write instead of new ones
        """
        result = self._run(feed) if outputs is None else self._run_into(feed, outputs)
        self.clock.pulse += 1
        self.changing = False
        if self.counts_faults and raises:
            self.raise_faults()
        return result

    def raise_faults(self) -> None:
        """Raise FaultError if the last pulse had faults and the stream stops at them."""
        if (self._total is None or self._total[0]) and self.stops_at_faults and self.has_faulted:
            self.fail()
            raise self.failure(f"in pulse {self.clock.pulse - 1}")

    @property
    def has_failed(self) -> bool:
        """Whether a pulse had faults, so that the state takes no further pulses before a reset or restore."""
        return self._flags.failed != 0

    def fail(self) -> None:
        """Refuse pulses until a reset or restore."""
        self._flags.failed = 1

    def failure(self, when: str) -> FaultError:
        """Return the error that lists the faults so far."""
        faults = self.faults
        return FaultError(
            f"{'; '.join(map(str, faults))}, {when}. There is no result for that: feed other values, or limit them "
            "before the node (Clip, Where). This stream cannot continue: reset() begins a new one, restore() goes "
            "back to a snapshot",
            faults,
        )

    def flush(
        self,
        rest: Feed | Array | None = None,
        fill: float = 0.0,
        after: Callable[[], None] | None = None,
        complete: bool = False,
    ) -> list[dict[str, Array]]:
        """End the stream after ``rest`` (less than a pulse, or nothing) and run the remaining pulses.

        Of several inputs one may have more frames left, if its length allows it. Missing frames are padded with
        ``fill``, which reaches no valid output frame. ``after`` is called after each pulse. ``complete`` continues the
        inputs with zeros until the model takes the length, such as a multiple of a number.
        Raises InputError: ``rest`` does not match the ports, or the model needs another length. FaultError as in
        ``step``. After any other exception nothing has changed.
        """
        self._require_whole()
        mark = self.mark()
        try:
            return self._run_to_end(self.end(rest, fill, complete), after)
        except FaultError:
            raise
        except BaseException:
            self.rewind(mark)
            raise

    def _run_to_end(self, feeds: Sequence[Feed], after: Callable[[], None] | None) -> list[dict[str, Array]]:
        """Do the work of ``flush``; separate, since Python 3.13 moves a loop's jump out of a ``try`` around it."""
        results: list[dict[str, Array]] = []
        for feed in feeds:
            results.append(self.advance(feed))
            if after is not None:
                after()
        return results

    def end(
        self, rest: Feed | Array | None = None, fill: float = 0.0, complete: bool = False
    ) -> list[dict[str, Array]]:
        """Fix the end of the stream; return the remaining pulses. Arguments and InputError as in ``flush``."""
        self.check_open(frames=0)
        arrays = named_rest(self._streaming, rest)
        counts, symbol = frame_counts(self._streaming, arrays), self.program.model.symbol
        totals = {port.name: self.clock.pulse * port.frames + counts[port.name] for port in self._streaming}
        completion = None
        if complete:
            completion = complete_inputs(self._streaming, totals, symbol, self.program.model.assumptions)
        if completion is not None:
            arrays = continue_with_zeros(self._streaming, arrays, completion.missing)
            totals = {name: total + completion.missing[name] for name, total in totals.items()}
        end = stream_end(self._streaming, totals, symbol)
        self._check_length(end)
        steps = self.program.steps(end)
        pulses_left, feeds = steps - self.clock.pulse, padded_pulses(self._streaming, arrays, fill)
        empty = filled_pulse(self._streaming, fill)
        pulses = [*feeds[:pulses_left], *[empty] * (pulses_left - len(feeds))]
        self.changing = True
        self._set_clock(self.clock.pulse, end)
        if completion is not None:
            self.clock.completed, self.clock.whole = completion.frames, completion.whole
        self._set_end()
        self.changing = False
        return pulses

    def reset(self) -> None:
        """Reset the stream to its state before the first pulse."""
        self.changing = True
        self._set_clock(0, None)
        self._clear()
        self._flags.failed = 0
        self.changing = False

    def mark(self) -> StateMark:
        """Save the state of the stream for ``rewind``."""
        return self._copy_memory(), (self.clock.pulse, self.clock.end), self.fetched

    def rewind(self, mark: StateMark) -> None:
        """Restore what ``mark`` of this stream returned."""
        self.changing = True
        memory, (pulse, end), self.fetched = mark
        self._set_clock(pulse, end)
        self._restore_memory(memory)
        self.changing = False

    def snapshot(self) -> bytes:
        """Return the whole state as bytes. Raises InputError: an exception has interrupted the stream in a pulse."""
        self._require_whole()
        end = -1 if self.clock.end is None else self.clock.end
        return _HEADER.pack(_MAGIC, self._fingerprint, self.clock.pulse, end) + self._memory_bytes()

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot of the same model, pulse, backend, weights, constants and version of pulse.

        Raises InputError: it is not a snapshot, or one of something else.
        """
        if len(snapshot) < _HEADER.size or snapshot[:8] != _MAGIC:
            raise InputError("this is not a snapshot of a stream")
        _, fingerprint, pulses, end = _HEADER.unpack_from(snapshot)
        if fingerprint != self._fingerprint:
            raise InputError(
                "the snapshot belongs to another model or pulse, to other constants or weights, or to another version "
                "of pulse; take it from the same program"
            )
        self._set_memory_bytes(snapshot[_HEADER.size :])
        self._set_clock(pulses, None if end < 0 else end)
        self._flags.failed = self.stops_at_faults and self.has_faulted
        self.changing = False

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.program, self.constants, self.snapshot(), self.fetched)

    @cached_property
    def _fingerprint(self) -> bytes:
        digest = blake2b(self.program.fingerprint, digest_size=16)
        for name, array in sorted(self.constants.items()):
            digest.update(name.encode() + array.tobytes())
        return digest.digest()

    def check_open(self, frames: int | None = None) -> None:
        """Raise InputError if the stream has ended, failed, was interrupted in a pulse, or would be too long."""
        if self.changing:
            self._require_whole()
        if self.has_failed:
            raise self.failure("before this call")
        if self.clock.end is not None:
            raise InputError("the stream has ended; begin a new one with reset()")
        limit = self.program.limit
        if limit is None:
            return
        total = self.clock.pulse * self.program.pulse + (self.program.pulse if frames is None else frames)
        if total > limit:
            raise InputError(
                f"the model takes at most {count_of(limit, 'frame')} of {self.program.model.symbol.name}, and this "
                "pulse would "
                f"make it {total}: flush and reset before it"
            )

    def _set_clock(self, pulse: int, end: int | None) -> None:
        """Set the number of pulses before the next one, and the end of the stream if it is known."""
        self.clock.pulse, self.clock.end = pulse, end
        self.clock.completed = self.clock.whole = 0
        self.clock.last = None if end is None else self.program.steps(end) - 1
        self._flags.ended = end is not None

    def _require_whole(self) -> None:
        if self.changing:
            raise InputError(
                f"an exception has left the stream inside pulse {self.clock.pulse}: begin a new one with reset(), "
                "or restore() a snapshot"
            )

    def _check_length(self, end: int) -> None:
        limit = self.program.limit
        if limit is not None and end > limit:
            raise InputError(
                f"the model takes at most {count_of(limit, 'frame')} of {self.program.model.symbol.name}, and this "
                f"stream has {end}"
            )
        env = {self.program.model.symbol: end}
        for assumption in self.program.model.assumptions:
            if assumption.symbols <= env.keys() and not assumption.eval(env):
                raise InputError(
                    f"a stream of {count_of(end, 'frame')} of {self.program.model.symbol.name} does not satisfy "
                    f"{assumption}, "
                    "which the model needs: end it at another frame, or complete it by complete=True of flush"
                )

    def _check(self, feed: Feed | Array) -> Feed:
        if type(feed) is np.ndarray and len(self._port_types) == 1:
            name, shape, dtype = self._port_types[0]
            if feed.shape == shape and feed.dtype == dtype:
                return {name: feed}
        elif isinstance(feed, dict) and len(feed) == len(self._port_types):
            for name, shape, dtype in self._port_types:
                array = feed.get(name)
                if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
                    break
            else:
                return feed
        return named_pulses(self._streaming, feed)


def split_memory(memory: bytes, arrays: Sequence[Array]) -> Iterator[Array]:
    """Return the memory of a snapshot as arrays like the given ones, not copied.

    Raises InputError: the size differs; before the first array
    """
    ends = [0, *accumulate(array.nbytes for array in arrays)]
    if len(memory) != ends[-1]:
        raise InputError(
            f"the snapshot holds {count_of(len(memory), 'byte')} of memory, but {ends[-1]} are needed; restore one of "
            "the same program"
        )
    return (
        np.frombuffer(memory[start:end], array.dtype).reshape(array.shape)
        for array, (start, end) in zip(arrays, pairwise(ends))
    )


def _restore(program: Any, constants: Feed, snapshot: bytes, fetched: list[Array]) -> State:
    """Restore a copied or unpickled stream."""
    state: State = program.spawn(constants)
    state.restore(snapshot)
    state.fetched = list(fetched)
    return state
