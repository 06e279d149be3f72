"""Build the pulsed graph: nodes whose facts are derived, and the buffers between them."""

from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.errors import FactError, PulsifyError
from pulse.facts import Array, PulsedFact, StreamFact
from pulse.graph import OutletId
from pulse.ops.clock import frames_at
from pulse.ops.op import Op
from pulse.ops.slice import Slice
from pulse.ops.time import Delay
from pulse.pulsify.network import PulsedGraph
from pulse.pulsify.stream_wires import StreamWire, require_size
from pulse.support.blake2 import blake2b
from pulse.support.record import record
from pulse.support.wording import count_of


@record(frozen=False)
class PulsedGraphBuilder:
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
            raise PulsifyError(
                f"{name} ({op.name}): on pulses of {count_of(self.pulse, 'frame')}: {error}"
            ) from error
        facts: list[PulsedFact] = []
        for fact, stream in zip(typed, streams, strict=True):
            if any(not dim.is_const for dim in fact.shape):
                raise PulsifyError(f"{name} ({op.name}): the shape {fact} of a pulse is not constant")
            require_size(fact.sizes, f"{name} ({op.name})")
            facts.append(PulsedFact(fact.dtype, fact.shape, fact.value, stream))
        return self.graph.add(name, op, inputs, facts)

    def require_frames(self, stream: StreamWire, name: str) -> StreamWire:
        """Return the stream. Raises PulsifyError: its pulses do not have the number of frames of its rate."""
        frames = int(self.graph.fact(stream.outlet).shape[stream.fact.axis])
        expected = self.frames(stream.fact.rate)
        if frames != expected:
            raise PulsifyError(
                f"{name}: pulses have {count_of(frames, 'frame')}, but rate {stream.fact.rate} means {expected}"
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
