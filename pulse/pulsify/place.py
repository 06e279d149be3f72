"""Second pass: wire the pulsed graph, node by node, with the offsets that the relations ask for.

With Din the offset of the input, ``span``, ``stride``, ``up`` and ``skip`` as in ``pulse.ops.relation``:

pointwise   D = max(Din of all inputs); the others are delayed to it
window      group g is at index g + G with G = ceil((Din + span - stride) / stride), D = G*up + skip
ends        D = Din - before; frames outside of the input are replaced by constants
banded      D = E + ahead with E = max(Din of keys and values, Din of queries - ahead, -ahead) their offset
ends, edge or reflect: the smallest D at which each new frame is in a pulse that already has its source
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from pulse.dim import TDim
from pulse.errors import PulsifyError
from pulse.facts import Array, StreamFact, TypedFact
from pulse.graph import Node, OutletId
from pulse.ops.delay import LastFrames
from pulse.ops.ends import FillEnds, mirrored
from pulse.ops.op import Op
from pulse.ops.relation import (
    Banded,
    Cumulative,
    Ends,
    Final,
    Pointwise,
    Positional,
    Relation,
    Tail,
    Whole,
    Window,
)
from pulse.ops.source import Source
from pulse.ops.stateful import Clock, Stateful, frames_at
from pulse.pulsify.relate import Flow, Related
from pulse.pulsify.wiring import Free, Mirrored, Stream, Wiring, lag
from pulse.typed import TypedModel

Wire: TypeAlias = OutletId | Stream | Free | Mirrored


@dataclass
class Placer:
    """Carries each typed wire into the pulsed graph: an outlet where it does not stream, else a Stream or Free."""

    model: TypedModel
    related: Related
    wiring: Wiring
    wires: dict[OutletId, Wire]

    def run(self) -> None:
        """Place every node."""
        for outlet in self.model.graph.inputs:
            self._source(self.model.graph.node(outlet))
        for node_id in self.related.order:
            node = self.model.graph.nodes[node_id]
            if isinstance(node.op, Source):
                continue
            relation = self.related.relations.get(node_id)
            inputs = [self._wire(outlet, relation) for outlet in node.inputs]
            if relation is None:
                facts = [outlet.fact for outlet in node.outputs]
                self._keep(
                    node,
                    self.wiring.add_all(node.name, node.op, [_still(w) for w in inputs], [None] * len(facts)),
                )
                continue
            results = self._place(node, relation, inputs)
            self._keep(node, results)

    def _wire(self, outlet: OutletId, relation: Relation | None) -> Wire:
        """A wire as a relation takes it: only a plain window fills in mirrored frames by itself."""
        plain = isinstance(relation, Window) and relation.op is not None
        if (
            plain
            and isinstance(relation, Window)
            and (relation.ends is None or relation.ends.changes_nothing)
        ):
            return self.wires[outlet]
        return self.written(outlet)

    def written(self, outlet: OutletId) -> OutletId | Stream | Free:
        """A wire with its mirrored frames written into the stream."""
        wire = self.wires[outlet]
        if isinstance(wire, Mirrored):
            name = self.model.graph.label(outlet)
            wire = self.wires[outlet] = self._mirrored_ends(name, wire)
        return wire

    def _keep(self, node: Node[TypedFact, Op], results: Sequence[Wire]) -> None:
        for slot, wire in enumerate(results):
            self.wires[OutletId(node.id, slot)] = wire

    def _source(self, node: Node[TypedFact, Op]) -> None:
        outlet = OutletId(node.id)
        flow = self.related.flows.get(outlet)
        (fact,) = (known.fact for known in node.outputs)
        if flow is None:
            if any(not dim.is_const for dim in fact.shape):
                return
            added = self.wiring.add(node.name, Source(fact), (), None)
            self.wiring.graph.inputs.append(added)
            self.wires[outlet] = added
            return
        shape = list(fact.shape)
        stream = StreamFact(flow.along, fact.shape[flow.along], flow.rate, 0)
        shape[flow.along] = TDim.of(self.wiring.frames(flow.rate))
        added = self.wiring.add(node.name, Source(TypedFact(fact.dtype, tuple(shape))), (), stream)
        self.wiring.graph.inputs.append(added)
        self.wires[outlet] = Stream(added, stream)

    def _place(self, node: Node[TypedFact, Op], relation: Relation, inputs: list[Wire]) -> Sequence[Wire]:
        flows = [self.related.flows[OutletId(node.id, slot)] for slot in range(len(node.outputs))]
        axis = flows[0].axis
        length = TDim.of(0) if axis is None else node.outputs[0].fact.shape[axis]
        match relation:
            case Pointwise():
                return self._pointwise(node, relation, inputs, flows)
            case Window():
                return [self._window(node, relation, inputs, flows[0].rate, length)]
            case Ends():
                return [self._extended(node.name, relation, self._fixed(inputs[0], relation), length)]
            case Positional():
                return [self._positional(node, relation, inputs, flows[0], length)]
            case Tail():
                return [self._tail(node, relation, inputs[0], length)]
            case Cumulative():
                return self._cumulative(node, relation, inputs, flows)
            case Banded():
                return [self._banded(node, relation, inputs, flows[0].rate, length)]
            case Final():
                reads = [_still(wire) for wire in inputs]
                return self.wiring.add_all(node.name, node.op, reads, [None] * len(flows))
            case Whole():
                raise AssertionError("refused by the first pass")

    # pointwise

    def _pointwise(
        self, node: Node[TypedFact, Op], relation: Pointwise, inputs: list[Wire], flows: list[Flow]
    ) -> Sequence[Wire]:
        streams = [wire for wire in inputs if isinstance(wire, Stream)]
        if not streams:
            return self._free_pointwise(node, relation, inputs, flows)
        offset = max(stream.fact.offset for stream in streams)
        prefixes: list[Array | None] = [None] * len(flows)
        if offset < 0:
            known = self._pointwise_prefix(node, relation, inputs, -offset)
            if known is None:
                offset = 0
            else:
                prefixes = list(known)
        return self._wire_pointwise(node, relation, inputs, flows, offset, prefixes)

    def _wire_pointwise(
        self,
        node: Node[TypedFact, Op],
        relation: Pointwise,
        inputs: list[Wire],
        flows: list[Flow],
        offset: int,
        prefixes: Sequence[Array | None],
    ) -> list[Stream]:
        outlets = [self._synchronised(wire, offset, node.name) for wire in inputs]
        facts = [
            StreamFact(flow.along, outlet.fact.shape[flow.along], flow.rate, offset, prefix)
            for flow, outlet, prefix in zip(flows, node.outputs, prefixes)
        ]
        op = node.op if relation.at is None else relation.at(self._frames(flows[0], facts[0]))
        results = self.wiring.add_all(node.name, op, outlets, facts)
        placed = [Stream(result, fact) for result, fact in zip(results, facts)]
        return placed if flows[0].final else [self.wiring.expect(stream, node.name) for stream in placed]

    def _frames(self, flow: Flow, fact: StreamFact) -> int:
        if not flow.final:
            return self.wiring.frames(flow.rate)
        highest = fact.length.bounds()[1]
        if highest is None:
            raise PulsifyError(f"{fact.length} frames at the end of the stream have no limit")
        return highest

    def _synchronised(self, wire: Wire, offset: int, name: str) -> OutletId:
        if isinstance(wire, Stream):
            return self.wiring.delayed(wire, offset, name).outlet
        if isinstance(wire, Free):
            return wire.at(offset).outlet
        return _still(wire)

    def _pointwise_prefix(
        self, node: Node[TypedFact, Op], relation: Pointwise, inputs: list[Wire], frames: int
    ) -> list[Array] | None:
        values: list[Array] = []
        for wire in inputs:
            value = self._first_frames(wire, frames)
            if value is None:
                return None
            values.append(value)
        op = node.op if relation.at is None else relation.at(frames)
        return op.eval(values, {})

    def _first_frames(self, wire: Wire, frames: int) -> Array | None:
        if isinstance(wire, Free):
            return wire.first(frames)
        if isinstance(wire, Stream):
            prefix = wire.fact.prefix
            return None if prefix is None else frames_at(prefix, wire.fact.axis, 0, frames)
        return self.wiring.known(_still(wire))

    def _free_pointwise(
        self, node: Node[TypedFact, Op], relation: Pointwise, inputs: list[Wire], flows: list[Flow]
    ) -> Sequence[Wire]:
        made: dict[int, list[Stream]] = {}

        def at(slot: int, offset: int) -> Stream:
            if offset not in made:
                prefixes = self._pointwise_prefix(node, relation, inputs, -offset) if offset < 0 else None
                made[offset] = self._wire_pointwise(
                    node, relation, inputs, flows, offset, prefixes or [None] * len(flows)
                )
            return made[offset][slot]

        def first(slot: int, frames: int) -> Array:
            values = self._pointwise_prefix(node, relation, inputs, frames)
            if values is None:
                raise PulsifyError(f"{node.name}: its first frames depend on an input of the model")
            return values[slot]

        return [
            Free(
                flow.along,
                outlet.fact.shape[flow.along],
                flow.rate,
                lambda offset, slot=slot: at(slot, offset),
                lambda frames, slot=slot: first(slot, frames),
            )
            for slot, (flow, outlet) in enumerate(zip(flows, node.outputs))
        ]

    # window

    def _fixed(self, wire: Wire, relation: Window | Ends) -> Stream:
        """A stream at one place; a free wire is put where it costs no delay."""
        if isinstance(wire, Stream):
            return wire
        assert isinstance(wire, Free)
        ends = relation.ends if isinstance(relation, Window) else relation
        if ends is not None and ends.after != 0:
            return wire.at(max(0, lag(wire.length, wire.rate, self.wiring.symbol, self.wiring.pulse)))
        return wire.at(-(relation.span if isinstance(relation, Window) else 0))

    def _window(
        self, node: Node[TypedFact, Op], window: Window, inputs: list[Wire], rate: Fraction, length: TDim
    ) -> Stream:
        name = node.name
        wire = inputs[window.source]
        extended = wire if isinstance(wire, Mirrored) else self._fixed(wire, window)
        if window.ends is not None and not window.ends.changes_nothing:
            assert isinstance(extended, Stream)
            padded = extended.fact.length + window.ends.before + window.ends.after
            extended = self._extended(name, window.ends, extended, padded)
        if isinstance(extended, Mirrored) and window.op is not None:
            return self._mirrored_window(node, window, inputs, extended, rate, length)
        stream = self._mirrored_ends(name, extended) if isinstance(extended, Mirrored) else extended
        if window.op is None:
            offset = stream.fact.offset + window.skip
            fact = replace(stream.fact, length=length, offset=offset, prefix=_after_skip(stream, window.skip))
            return Stream(stream.outlet, fact)
        values = [self.wiring.known(wire) if isinstance(wire, OutletId) else None for wire in inputs]
        if stream.fact.offset < 0 and any(
            value is None for slot, value in enumerate(values) if slot != window.source
        ):
            stream = self.wiring.delayed(stream, 0, name)
        group_offset = -((window.stride - window.span - stream.fact.offset) // window.stride)
        start = stream.fact.offset - group_offset * window.stride
        outlet = self.wiring.window(stream, max(0, -start), name)
        if start > 0:
            outlet = self.wiring.cropped(
                outlet, stream.fact.axis, start, self.wiring.frames(stream.fact.rate), name
            )
        offset = group_offset * window.up + window.skip
        prefix = self._window_prefix(window, stream, values, -offset) if offset < 0 else None
        fact = StreamFact(window.axis, length, rate, offset, prefix)
        reads = [outlet if slot == window.source else _still(wire) for slot, wire in enumerate(inputs)]
        return self.wiring.expect(Stream(self.wiring.add(name, window.op, reads, fact), fact), name)

    def _window_prefix(
        self, window: Window, stream: Stream, values: list[Array | None], frames: int
    ) -> Array:
        assert stream.fact.prefix is not None and window.op is not None
        operands = [
            stream.fact.prefix if slot == window.source else value for slot, value in enumerate(values)
        ]
        (result,) = window.op.eval([value for value in operands if value is not None], {})
        return frames_at(result, window.axis, window.skip, window.skip + frames)

    # ends

    def _extended(self, name: str, ends: Ends, stream: Stream, length: TDim) -> Stream | Mirrored:
        """The stream with frames added at its ends; constant ones at once, mirrored ones when they are looked at."""
        if ends.mode == "constant":
            if ends.after != 0:
                stream = self._surely_ended(stream, name)
            return self._constant_ends(name, ends, stream, int(ends.before), length)
        return Mirrored(self.wiring.delayed(stream, max(0, stream.fact.offset), name), ends, length)

    def _surely_ended(self, stream: Stream, name: str) -> Stream:
        return self.wiring.delayed(stream, max(stream.fact.offset, self._sure(stream)), name)

    def _sure(self, stream: Stream) -> int:
        return lag(stream.fact.length, stream.fact.rate, self.wiring.symbol, self.wiring.pulse)

    def _constant_ends(self, name: str, ends: Ends, stream: Stream, before: int, length: TDim) -> Stream:
        fact = stream.fact
        outlet = stream.outlet
        offset = fact.offset - before
        if ends.after != 0 or (before > 0 and fact.offset > 0):
            dtype = self.wiring.graph.fact(outlet).dtype
            op = FillEnds(
                fact.axis,
                0,
                fact.offset,
                fact.offset,
                fact.length,
                "constant",
                ends.fill,
                _cast(ends.head, dtype),
                _cast(ends.tail, dtype),
            )
            outlet = self.wiring.add(f"{name}.ends", op, [outlet], fact)
        prefix = (
            frames_at(self._padded_prefix(ends, stream, before), fact.axis, 0, -offset)
            if offset < 0
            else None
        )
        return Stream(outlet, StreamFact(fact.axis, length, fact.rate, offset, prefix))

    def _padded_prefix(self, ends: Ends, stream: Stream, before: int) -> Array:
        axis = stream.fact.axis
        fact = self.wiring.graph.fact(stream.outlet)
        shape = list(fact.sizes)
        shape[axis] = before
        head = np.full(shape, ends.fill, fact.dtype)
        if ends.head is not None:
            head[...] = ends.head
        parts = [head] if stream.fact.prefix is None else [head, stream.fact.prefix]
        return np.concatenate(parts, axis)

    def _mirrored_ends(self, name: str, wire: Mirrored) -> Stream:
        """Mirrored frames written into the stream, each in a pulse that already has its source."""
        fact, before = wire.stream.fact, int(wire.ends.before)
        pulse = self.wiring.frames(fact.rate)
        sure = self._sure(wire.stream) if wire.ends.after != 0 else 0
        offset = max(0, fact.offset - before, sure - before)
        while not all(
            (j + offset) // pulse * pulse + pulse > fact.offset + _source_of(wire.ends, j - before)
            for j in range(before)
        ):
            offset += 1
        overlap = offset - (fact.offset - before) + _look_back(name, wire.ends)
        window = self.wiring.window(wire.stream, overlap, name)
        op = FillEnds(fact.axis, overlap, fact.offset, offset + before, fact.length, wire.ends.mode)
        out = StreamFact(fact.axis, wire.length, fact.rate, offset)
        return self.wiring.expect(Stream(self.wiring.add(f"{name}.ends", op, [window], out), out), name)

    def _mirrored_window(
        self,
        node: Node[TypedFact, Op],
        window: Window,
        inputs: list[Wire],
        wire: Mirrored,
        rate: Fraction,
        length: TDim,
    ) -> Stream:
        """A window over a stream with mirrored ends, which it fills in its own view of the frames.

        The first group that sees a frame before the first one waits until that frame's source has come.
        """
        assert window.op is not None
        name, before = node.name, int(wire.ends.before)
        stream = wire.stream if wire.ends.after == 0 else self._surely_ended(wire.stream, name)
        fact = stream.fact
        pulse = self.wiring.frames(fact.rate)
        groups = pulse // window.stride
        first = fact.offset - before
        group_offset = -((window.stride - window.span - first) // window.stride)
        users = [max(0, -((window.span - 1 - frame) // window.stride)) for frame in range(before)]
        while not all(
            ((group + group_offset) // groups + 1) * pulse
            > fact.offset + _source_of(wire.ends, frame - before)
            for frame, group in enumerate(users)
        ):
            group_offset += 1
        start = first - group_offset * window.stride
        keep = max(0, -start)
        overlap = keep + _look_back(name, wire.ends)
        seen = self.wiring.window(stream, overlap, name)
        op = FillEnds(fact.axis, overlap, fact.offset, fact.offset, fact.length, wire.ends.mode, keep=keep)
        filled = self.wiring.add(f"{name}.ends", op, [seen], fact)
        needed = (groups - 1) * window.stride + window.span
        filled = self.wiring.cropped(filled, fact.axis, start + keep, start + keep + needed, name)
        out = StreamFact(window.axis, length, rate, group_offset * window.up + window.skip)
        reads = [filled if slot == window.source else _still(other) for slot, other in enumerate(inputs)]
        return self.wiring.expect(Stream(self.wiring.add(name, window.op, reads, out), out), name)

    # states

    def _cumulative(
        self, node: Node[TypedFact, Op], relation: Cumulative, inputs: list[Wire], flows: list[Flow]
    ) -> Sequence[Wire]:
        inputs = [wire.at(0) if isinstance(wire, Free) else wire for wire in inputs]
        streams = [wire for wire in inputs if isinstance(wire, Stream)]
        offset = max(stream.fact.offset for stream in streams)
        past = None
        if offset < 0:
            values = [self._first_frames(wire, -offset) for wire in inputs]
            known = [value for value in values if value is not None]
            past = node.op.eval(known, {}) if len(known) == len(values) else None
            offset = 0 if past is None else offset
        reads = [self._synchronised(wire, offset, node.name) for wire in inputs]
        op = relation.at(offset, streams[0].fact.length, past)
        facts = [
            None
            if flow.axis is None
            else StreamFact(
                flow.axis,
                outlet.fact.shape[flow.axis],
                flow.rate,
                offset,
                None if past is None else past[slot],
            )
            for slot, (flow, outlet) in enumerate(zip(flows, node.outputs))
        ]
        outlets = self.wiring.add_all(node.name, op, reads, facts)
        return [
            outlet if fact is None else self.wiring.expect(Stream(outlet, fact), node.name)
            for outlet, fact in zip(outlets, facts)
        ]

    # bands

    def _banded(
        self, node: Node[TypedFact, Op], band: Banded, inputs: list[Wire], rate: Fraction, length: TDim
    ) -> Stream:
        needs = [-band.ahead]
        for slot, wire in enumerate(inputs):
            if isinstance(wire, Stream):
                needs.append(wire.fact.offset - (band.ahead if slot == 0 else 0))
        if band.ahead > 0:
            needs.append(lag(length, rate, self.wiring.symbol, self.wiring.pulse))
        late = max(needs)
        offset = late + band.ahead
        placed = [self._at(wire, late if slot else offset, node.name) for slot, wire in enumerate(inputs)]
        reads = [placed[0].outlet]
        reads += [self.wiring.window(stream, band.back + band.ahead, node.name) for stream in placed[1:]]
        fact = StreamFact(band.axis, length, rate, offset)
        added = self.wiring.add(node.name, band.at(offset, length), reads, fact)
        return self.wiring.expect(Stream(added, fact), node.name)

    def _at(self, wire: Wire, offset: int, name: str) -> Stream:
        if isinstance(wire, Free):
            return wire.at(offset)
        assert isinstance(wire, Stream)
        return self.wiring.delayed(wire, offset, name)

    # positions and tails

    def _positional(
        self, node: Node[TypedFact, Op], relation: Positional, inputs: list[Wire], flow: Flow, length: TDim
    ) -> Free:
        reads = [_still(wire) for wire in inputs]
        made: dict[int, Stream] = {}

        def first(frames: int) -> Array:
            values = [self.wiring.known(outlet) for outlet in reads]
            if any(value is None for value in values):
                raise PulsifyError(f"{node.name}: its first frames depend on an input of the model")
            operands = [value for value in values if value is not None]
            op = relation.at(0, frames)
            if isinstance(op, Stateful):
                return op.step(operands, op.begin(), Clock(self.wiring.symbol))[0]
            return op.eval(operands, {})[0]

        def at(offset: int) -> Stream:
            if offset not in made:
                op = relation.at(offset, self.wiring.frames(flow.rate))
                prefix = first(-offset) if offset < 0 else None
                fact = StreamFact(relation.axis, length, flow.rate, offset, prefix)
                made[offset] = self.wiring.expect(
                    Stream(self.wiring.add(node.name, op, reads, fact), fact), node.name
                )
            return made[offset]

        return Free(relation.axis, length, flow.rate, at, first)

    def _tail(self, node: Node[TypedFact, Op], tail: Tail, wire: Wire, length: TDim) -> Stream:
        stream = (
            wire if isinstance(wire, Stream) else self._fixed(wire, Ends(tail.axis, TDim.of(0), TDim.of(1)))
        )
        if stream.fact.offset < 0:
            stream = self.wiring.delayed(stream, 0, node.name)
        stream = self._surely_ended(stream, node.name)
        fact = self.wiring.graph.fact(stream.outlet)
        op = LastFrames(tail.axis, tail.frames, stream.fact.offset, stream.fact.length, fact)
        out = StreamFact(tail.axis, length, Fraction(0), 0)
        return Stream(self.wiring.add(node.name, op, [stream.outlet], out), out)


def _still(wire: Wire) -> OutletId:
    """The outlet of a wire that does not stream."""
    if isinstance(wire, Stream | Free | Mirrored):
        raise AssertionError("a stream where the relation speaks of none")
    return wire


def _cast(table: Array | None, dtype: np.dtype[np.generic]) -> Array | None:
    return None if table is None else table.astype(dtype, copy=False)


def _after_skip(stream: Stream, skip: int) -> Array | None:
    prefix = stream.fact.prefix
    if prefix is None or stream.fact.offset + skip >= 0:
        return None
    return frames_at(prefix, stream.fact.axis, skip, prefix.shape[stream.fact.axis])


def _look_back(name: str, ends: Ends) -> int:
    """How far behind a frame after the last one its source may be."""
    after = int(ends.after) if ends.after.is_const else ends.after.bounds()[1]
    if after is None:
        raise PulsifyError(f"{name}: {ends.after} frames of padding at the end have no limit")
    return after * (1 if ends.mode == "edge" else 2)


def _source_of(ends: Ends, frame: int) -> int:
    """The frame that fills one before the first."""
    return 0 if ends.mode == "edge" else mirrored(frame, 0)
