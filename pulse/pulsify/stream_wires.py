"""Build the pulsed graph: wires with their position in time, and the buffers between them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.errors import FactError, PulsifyError
from pulse.facts import Array, PulsedFact, StreamFact, TypedFact, shape_text
from pulse.graph import OutletId
from pulse.ops.check import replace_all_failing
from pulse.ops.clock import frames_at
from pulse.ops.op import Ends, Op
from pulse.ops.slice import Slice
from pulse.ops.time import Delay
from pulse.pulsify.network import PulsedGraph
from pulse.support.blake2 import blake2b
from pulse.support.record import record


@record
class StreamWire:
    """A wire of the pulsed graph and its position in time.

    Its fact may differ from its outlet's fact: padding at the start moves frame 0 without changing a pulse.
    """

    outlet: OutletId
    fact: StreamFact


@record
class FreeWire:
    """A wire whose frames are a function of their position, so that it exists at any offset.

    axis          the stream axis
    length        frames of the whole stream
    rate          frames for each frame of the symbol
    wire_at       function that makes the wire at an offset
    first_frames  function that returns its first n frames; None if they depend on an input of the model
    """

    axis: int
    length: TDim
    rate: Fraction
    wire_at: Callable[[int], StreamWire]
    first_frames: Callable[[int], Array | None]


@record
class MirroredWire:
    """A stream whose edge or mirrored frames at the ends are not written yet.

    A window fills them in when it reads them, which may be earlier than they could be written into the stream.

    stream  the stream without them; if frames follow, it is delayed by its lag
    ends    these frames
    length  the number of frames, with those of ``ends`` and ``outer``
    outer   constant frames around them
    """

    stream: StreamWire
    ends: Ends
    length: TDim
    outer: Ends | None = None

    @property
    def without_outer(self) -> "MirroredWire":
        """The same without the constant frames around it."""
        return replace(self, outer=None, length=self.stream.fact.length + self.ends.before + self.ends.after)

    @property
    def first_index(self) -> int:
        """The index of the first frame before the stream, constant or mirrored."""
        front = 0 if self.outer is None else int(self.outer.before)
        return self.stream.fact.offset - int(self.ends.before) - front

    @property
    def has_frames_after(self) -> bool:
        """Whether frames follow after the last one of ``stream``."""
        return self.ends.after != 0 or (self.outer is not None and self.outer.after != 0)

    def can_surround(self, ends: Ends) -> bool:
        """Return whether these frames may be its ``outer``."""
        if self.outer is None or ends.mode != "constant":
            return ends.mode == "constant"
        tables = (self.outer.head, self.outer.tail, ends.head, ends.tail)
        return self.outer.fill == ends.fill and all(table is None for table in tables)

    def surround(self, ends: Ends, length: TDim) -> "MirroredWire":
        """Add constant frames around it."""
        if self.outer is None:
            return replace(self, outer=ends, length=length)
        before, after = self.outer.before + ends.before, self.outer.after + ends.after
        return replace(self, outer=replace(self.outer, before=before, after=after), length=length)


MAX_PULSE = 1 << 26
"""Maximum number of elements in one pulse of a wire, or in one buffer; more would be a mistake."""


def require_size(sizes: Sequence[int], name: str) -> None:
    """Raise PulsifyError if a tensor is too large for one pulse or buffer."""
    if math.prod(sizes) > MAX_PULSE or max(sizes, default=0) > MAX_PULSE:
        raise PulsifyError(
            f"{name}: {shape_text(sizes)} has {math.prod(sizes)} elements in one pulse or buffer, more than "
            f"{MAX_PULSE}; use a smaller pulse, or a model of smaller sizes"
        )


def evaluate_prefix(op: Op, values: Sequence[Array], name: str) -> list[Array]:
    """Evaluate an op on frames that are known before the stream begins. Raises PulsifyError: a fault, or too large."""
    _, failures = replace_all_failing(op.checks([v.shape for v in values], [v.dtype for v in values]), values)
    if failures:
        faults = "; ".join(str(check.fault(name, op.name, count)) for check, count in failures)
        raise PulsifyError(
            f"{faults}, in frames that are known before the stream begins: every run of the model fails"
        )
    for fact in op.facts([TypedFact.of(value) for value in values]):
        require_size(fact.sizes, f"{name} ({op.name})")
    return op.eval(values, {})


AnyWire: TypeAlias = OutletId | StreamWire | FreeWire | MirroredWire
"""A typed wire in the pulsed graph: an outlet if it does not stream."""


def static_outlet(wire: AnyWire) -> OutletId:
    """Return the outlet of a wire that does not stream."""
    if isinstance(wire, StreamWire | FreeWire | MirroredWire):
        raise AssertionError("the relation has no stream, but the wire streams")
    return wire


@record(frozen=False)
class Wiring:
    """The pulsed graph under construction."""

    graph: PulsedGraph
    symbol: Symbol
    pulse: int
    _buffers: dict[tuple[OutletId, int, int, bytes], OutletId] = field(
        default_factory=dict[tuple[OutletId, int, int, bytes], OutletId]
    )
    _parents: dict[OutletId, tuple[OutletId, Array]] = field(
        default_factory=dict[OutletId, tuple[OutletId, Array]]
    )

    def frames(self, rate: Fraction) -> int:
        """Return the number of frames in each pulse of a wire of this rate."""
        frames = rate * self.pulse
        assert frames.denominator == 1, f"pulse {self.pulse} does not suit rate {rate}"
        return int(frames)

    def add(self, name: str, op: Op, inputs: Sequence[OutletId], stream: StreamFact | None) -> OutletId:
        """Add a node with one output; its fact is derived and, if it streams, its frames are checked."""
        return self.add_all(name, op, inputs, (stream,))[0]

    def add_all(
        self, name: str, op: Op, inputs: Sequence[OutletId], streams: Sequence[StreamFact | None]
    ) -> list[OutletId]:
        """Add a node, with a position in time for each output. Raises PulsifyError: the sizes do not match."""
        try:
            typed = op.facts([self.graph.fact(outlet) for outlet in inputs])
        except FactError as error:
            raise PulsifyError(f"{name} ({op.name}): on pulses of {self.pulse} frames: {error}") from error
        facts: list[PulsedFact] = []
        for fact, stream in zip(typed, streams, strict=True):
            if any(not dim.is_const for dim in fact.shape):
                raise PulsifyError(f"{name} ({op.name}): the shape {fact} of a pulse is not constant")
            require_size(fact.sizes, f"{name} ({op.name})")
            facts.append(PulsedFact(fact.dtype, fact.shape, fact.value, stream))
        return self.graph.add(name, op, inputs, facts)

    def expect(self, stream: StreamWire, name: str) -> StreamWire:
        """Return the stream. Raises PulsifyError: its pulses do not have the number of frames of its rate."""
        frames = int(self.graph.fact(stream.outlet).shape[stream.fact.axis])
        expected = self.frames(stream.fact.rate)
        if frames != expected:
            raise PulsifyError(
                f"{name}: pulses have {frames} frames, but rate {stream.fact.rate} means {expected}"
            )
        return stream

    def delay(self, stream: StreamWire, offset: int, name: str) -> StreamWire:
        """Delay a stream to a larger offset."""
        fact = stream.fact
        delay = offset - fact.offset
        if delay == 0:
            return stream
        assert delay > 0, f"{name}: cannot bring a stream forward by {-delay}"
        initial = self.initial_frames(stream, delay)
        prefix = None if offset >= 0 or fact.prefix is None else frames_at(fact.prefix, fact.axis, 0, -offset)
        later = replace(fact, offset=offset, prefix=prefix)
        outlet = self._buffer(stream.outlet, Delay(fact.axis, delay, 0, initial), f"{name}.delay", later)
        self._parents.setdefault(outlet, (stream.outlet, initial))
        return StreamWire(outlet, later)

    def window(self, stream: StreamWire, overlap: int, name: str) -> OutletId:
        """Return each pulse preceded by the ``overlap`` frames before it; a delay before it shares the buffer."""
        if overlap == 0:
            return stream.outlet
        axis = stream.fact.axis
        initial = self.initial_frames(stream, overlap)
        parent = self._parents.get(stream.outlet)
        if parent is None:
            return self._buffer(
                stream.outlet, Delay(axis, 0, overlap, initial), f"{name}.window", stream.fact
            )
        outlet, later = parent
        op = Delay(axis, later.shape[axis], overlap, np.concatenate([initial, later], axis))
        return self._buffer(outlet, op, f"{name}.window", stream.fact)

    def _buffer(self, outlet: OutletId, op: Delay, name: str, fact: StreamFact) -> OutletId:
        digest = blake2b(op.initial.tobytes(), digest_size=16).digest()
        key = (outlet, op.delay, op.overlap, digest)
        if key not in self._buffers:
            self._buffers[key] = self.add(name, op, [outlet], fact)
        return self._buffers[key]

    def initial_frames(self, stream: StreamWire, frames: int) -> Array:
        """Return the last frames before index 0: the prefix, with zeros before it."""
        fact = self.graph.fact(stream.outlet)
        shape = list(fact.sizes)
        shape[stream.fact.axis] = frames
        require_size(shape, self.graph.label(stream.outlet))
        initial = np.zeros(shape, fact.dtype)
        prefix = stream.fact.prefix
        if prefix is not None:
            axis = stream.fact.axis
            size = min(frames, prefix.shape[axis])
            frames_at(initial, axis, frames - size, frames)[...] = frames_at(
                prefix, axis, prefix.shape[axis] - size, prefix.shape[axis]
            )
        return initial

    def crop(self, outlet: OutletId, axis: int, start: int, stop: int, name: str) -> OutletId:
        """Slice a pulse to the frames from ``start`` to ``stop``; return the wire itself if these are all."""
        size = int(self.graph.fact(outlet).shape[axis])
        if (start, stop) == (0, size):
            return outlet
        op = Slice(axis, TDim.of(start), TDim.of(stop))
        return self.add(f"{name}.crop", op, [outlet], self.graph.fact(outlet).stream)

    def known_value(self, outlet: OutletId) -> Array | None:
        """Return the value of a wire that does not stream, if it is constant."""
        return self.graph.fact(outlet).value
