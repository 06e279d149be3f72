"""Second pass: wire the pulsed graph, node by node, with the offsets that the relations need.

An input of the model has offset 0. With ``source`` the offset of an op's input, and ``span``, ``stride``, ``up`` and
``skip`` as in ``pulse.ops.op``, the offset of its output is:

pointwise   the maximum of its inputs; the others are delayed to it. It is negative only if the frames before the
            stream are known, else 0; cumulative too
window      first_group*up + skip, where ``first_group = ceil((source + span - stride) / stride)`` is the index of
            the first group; the op sees the frames of whole groups, which may begin and end inside a pulse
ends        source - before; frames outside the input are replaced by constants
cumulative  the maximum of its inputs, and at least the lag of their length if a state is read, or its body counts
            faults
banded      m + wait, where m is the largest of: the offsets of keys and values; the offset of queries less ``wait``;
            ``-wait``; with ``ahead > 0``, the lag of the length. ``wait`` is ``ahead``, or less if each frame is then
            still in a pulse that has all frames that it needs
mirrored    (ends of mode edge, reflect or symmetric) the smallest offset at which each new frame is in a pulse that
            already has its source
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from pulse.dim import TDim
from pulse.errors import PulsifyError
from pulse.facts import Array, StreamFact, TypedFact
from pulse.graph import Node, OutletId
from pulse.ops.clock import Clock, frames_at
from pulse.ops.op import (
    Banded,
    Cumulative,
    Ends,
    Final,
    Op,
    Pointwise,
    Positional,
    Relation,
    Tail,
    Whole,
    Window,
)
from pulse.ops.source import Source
from pulse.ops.stateful import Stateful
from pulse.ops.time import LastFrames
from pulse.pulsify.ends import delay_by_lag, extend_ends, require_lag, write_mirrored_ends
from pulse.pulsify.faults import body_sites
from pulse.pulsify.graph_builder import PulsedGraphBuilder
from pulse.pulsify.stream_relations import StreamRelations, WireFlow
from pulse.pulsify.stream_wires import (
    AnyWire,
    FreeWire,
    MirroredWire,
    StreamWire,
    evaluate_prefix,
    static_outlet,
)
from pulse.pulsify.windows import fix_offset, schedule_window, takes_mirrored
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.typed import TypedNetwork


@record(frozen=False)
class Scheduler:
    """Carries each typed wire into the pulsed graph.

    model    the typed model
    related  the axes, rates and relations from the first pass
    builder  the pulsed graph under construction
    wires    typed outlet -> its wire in the pulsed graph
    """

    model: TypedNetwork
    related: StreamRelations
    builder: PulsedGraphBuilder
    wires: dict[OutletId, AnyWire]

    def run(self) -> None:
        """Schedule every node."""
        for outlet in self.model.graph.inputs:
            self._schedule_source(self.model.graph.node(outlet))
        for node_id in self.related.order:
            node = self.model.graph.nodes[node_id]
            if isinstance(node.op, Source):
                continue
            relation = self.related.relations.get(node_id)
            inputs = [self._readable_wire(outlet, relation) for outlet in node.inputs]
            if relation is None:
                facts = [outlet.fact for outlet in node.outputs]
                outlets = [static_outlet(wire) for wire in inputs]
                results = self.builder.add_all(node.name, node.op, outlets, [None] * len(facts))
            else:
                results = self._schedule(node, relation, inputs)
            self._keep(node, results)

    def _readable_wire(self, outlet: OutletId, relation: Relation | None) -> AnyWire:
        """Return a wire as the relation accepts it: windows fill in mirrored frames, and constant ones around them."""
        wire = self.wires[outlet]
        if isinstance(wire, MirroredWire) and not takes_mirrored(relation, wire):
            return self.write_ends(outlet)
        return wire

    def write_ends(self, outlet: OutletId) -> OutletId | StreamWire | FreeWire:
        """Write the mirrored frames of a wire into the stream."""
        wire = self.wires[outlet]
        if isinstance(wire, MirroredWire):
            name = self.model.graph.label(outlet)
            wire = self.wires[outlet] = write_mirrored_ends(self.builder, name, wire)
        return wire

    def _keep(self, node: Node[TypedFact, Op], results: Sequence[AnyWire]) -> None:
        for slot, wire in enumerate(results):
            self.wires[OutletId(node.id, slot)] = wire

    def _schedule_source(self, node: Node[TypedFact, Op]) -> None:
        outlet = OutletId(node.id)
        flow = self.related.flows.get(outlet)
        (fact,) = (output.fact for output in node.outputs)
        if flow is None:
            if any(not dim.is_const for dim in fact.shape):
                return
            wire = self.builder.add(node.name, Source(fact), (), None)
            self.builder.graph.inputs.append(wire)
            self.wires[outlet] = wire
            return
        shape = list(fact.shape)
        stream = StreamFact(flow.stream_axis, fact.shape[flow.stream_axis], flow.rate, 0)
        shape[flow.stream_axis] = TDim.of(self.builder.frames(flow.rate))
        wire = self.builder.add(node.name, Source(TypedFact(fact.dtype, tuple(shape))), (), stream)
        self.builder.graph.inputs.append(wire)
        self.wires[outlet] = StreamWire(wire, stream)

    def _schedule(
        self, node: Node[TypedFact, Op], relation: Relation, inputs: list[AnyWire]
    ) -> Sequence[AnyWire]:
        flows = [self.related.flows[outlet] for outlet in node.wires]
        axis = flows[0].axis
        length = TDim.of(0) if axis is None else node.outputs[0].fact.shape[axis]
        match relation:
            case Pointwise():
                return self._schedule_pointwise(node, relation, inputs, flows)
            case Window():
                return [schedule_window(self.builder, node.name, relation, inputs, flows[0].rate, length)]
            case Ends() if isinstance(mirrored := inputs[0], MirroredWire):
                return [mirrored.surround(relation, length)]
            case Ends():
                return [
                    extend_ends(
                        self.builder,
                        node.name,
                        relation,
                        fix_offset(self.builder, inputs[0], relation, node.name),
                        length,
                    )
                ]
            case Positional():
                return [self._schedule_positional(node, relation, inputs, flows[0], length)]
            case Tail():
                return [self._schedule_tail(node, relation, inputs[0], length)]
            case Cumulative():
                return self._schedule_cumulative(node, relation, inputs, flows)
            case Banded():
                return [self._schedule_banded(node, relation, inputs, flows[0].rate, length)]
            case Final():
                reads = [static_outlet(wire) for wire in inputs]
                return self.builder.add_all(node.name, node.op, reads, [None] * len(flows))
            case Whole():
                raise AssertionError("refused by the first pass")

    # pointwise

    def _schedule_pointwise(
        self, node: Node[TypedFact, Op], relation: Pointwise, inputs: list[AnyWire], flows: list[WireFlow]
    ) -> Sequence[AnyWire]:
        """Run the op at the largest offset of its streams.

        If that is negative, the frames before the stream must be known; otherwise the offset is 0.
        """
        streams = [wire for wire in inputs if isinstance(wire, StreamWire)]
        if not streams:
            return self._free_pointwise(node, relation, inputs, flows)
        offset = max(stream.fact.offset for stream in streams)
        prefixes: list[Array | None] = [None] * len(flows)
        if offset < 0:
            constants = self._pointwise_prefix(node, relation, inputs, -offset)
            if constants is None:
                offset = 0
            else:
                prefixes = list(constants)
        return self._wire_pointwise(node, relation, inputs, flows, offset, prefixes)

    def _wire_pointwise(
        self,
        node: Node[TypedFact, Op],
        relation: Pointwise,
        inputs: list[AnyWire],
        flows: list[WireFlow],
        offset: int,
        prefixes: Sequence[Array | None],
    ) -> list[StreamWire]:
        """Add the op for pulses, with all inputs at one offset; ``prefixes`` are the frames of its outputs before 0."""
        outlets = [self._synchronise(wire, offset, node.name) for wire in inputs]
        facts = [
            StreamFact(flow.stream_axis, outlet.fact.shape[flow.stream_axis], flow.rate, offset, prefix)
            for flow, outlet, prefix in zip(flows, node.outputs, prefixes)
        ]
        op = node.op if relation.make_op is None else relation.make_op(self._frames(flows[0], facts[0]))
        results = self.builder.add_all(node.name, op, outlets, facts)
        streams = [StreamWire(result, fact) for result, fact in zip(results, facts)]
        if flows[0].final:
            return streams
        return [self.builder.require_frames(stream, node.name) for stream in streams]

    def _frames(self, flow: WireFlow, fact: StreamFact) -> int:
        """Return the frames of a wire in a pulse; of one that is known at the end, the most that it can have."""
        if not flow.final:
            return self.builder.frames(flow.rate)
        highest = fact.length.bounds()[1]
        if highest is None:
            raise PulsifyError(
                f"{count_of(fact.length, 'frame')} at the end grow with the stream; give a constant number of frames"
            )
        return highest

    def _synchronise(self, wire: AnyWire, offset: int, name: str) -> OutletId:
        """Return a wire delayed to an offset; a fixed tensor as it is."""
        return wire if isinstance(wire, OutletId) else self._delayed_stream(wire, offset, name).outlet

    def _pointwise_prefix(
        self, node: Node[TypedFact, Op], relation: Pointwise, inputs: list[AnyWire], frames: int
    ) -> list[Array] | None:
        """Return the first frames of each output, before the stream; None if those of an input are not known."""
        values: list[Array] = []
        for wire in inputs:
            value = self._first_frames(wire, frames)
            if value is None:
                return None
            values.append(value)
        op = node.op if relation.make_op is None else relation.make_op(frames)
        return evaluate_prefix(op, values, node.name)

    def _first_frames(self, wire: AnyWire, frames: int) -> Array | None:
        if isinstance(wire, FreeWire):
            return wire.first_frames(frames)
        if isinstance(wire, StreamWire):
            prefix = wire.fact.prefix
            return None if prefix is None else frames_at(prefix, wire.fact.axis, 0, frames)
        return self.builder.known_value(static_outlet(wire))

    def _free_pointwise(
        self, node: Node[TypedFact, Op], relation: Pointwise, inputs: list[AnyWire], flows: list[WireFlow]
    ) -> Sequence[AnyWire]:
        @cache
        def wires_at(offset: int) -> list[StreamWire]:
            prefixes = self._pointwise_prefix(node, relation, inputs, -offset) if offset < 0 else None
            return self._wire_pointwise(
                node, relation, inputs, flows, offset, prefixes or [None] * len(flows)
            )

        def first_frames(slot: int, frames: int) -> Array | None:
            values = self._pointwise_prefix(node, relation, inputs, frames)
            return None if values is None else values[slot]

        return [
            FreeWire(
                flow.stream_axis,
                outlet.fact.shape[flow.stream_axis],
                flow.rate,
                lambda offset, slot=slot: wires_at(offset)[slot],
                lambda frames, slot=slot: first_frames(slot, frames),
            )
            for slot, (flow, outlet) in enumerate(zip(flows, node.outputs))
        ]

    # states

    def _schedule_cumulative(
        self, node: Node[TypedFact, Op], relation: Cumulative, inputs: list[AnyWire], flows: list[WireFlow]
    ) -> Sequence[AnyWire]:
        inputs = [wire.wire_at(0) if isinstance(wire, FreeWire) else wire for wire in inputs]
        streams = [wire for wire in inputs if isinstance(wire, StreamWire)]
        offset = max(stream.fact.offset for stream in streams)
        if self._state_is_read(node, relation) or any(body_sites(node.name, node.op)):
            fact = streams[0].fact
            offset = max(offset, require_lag(self.builder, fact.length, fact.rate, node.name))
        past = None
        if offset < 0:
            values = [self._first_frames(wire, -offset) for wire in inputs]
            constants = [value for value in values if value is not None]
            past = evaluate_prefix(node.op, constants, node.name) if len(constants) == len(values) else None
            offset = 0 if past is None else offset
        reads = [self._synchronise(wire, offset, node.name) for wire in inputs]
        op = relation.make_op(offset, streams[0].fact.length, past)
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
        outlets = self.builder.add_all(node.name, op, reads, facts)
        return [
            outlet if fact is None else self.builder.require_frames(StreamWire(outlet, fact), node.name)
            for outlet, fact in zip(outlets, facts)
        ]

    def _state_is_read(self, node: Node[TypedFact, Op], relation: Cumulative) -> bool:
        """Return whether an output depends on a state. If so, only frames that are known to exist may enter it."""
        graph = self.model.graph
        states = [OutletId(node.id, slot) for slot, axis in enumerate(relation.axes) if axis is None]
        return any(state in graph.outputs or graph.outlet(state).successors for state in states)

    # bands

    def _schedule_banded(
        self, node: Node[TypedFact, Op], band: Banded, inputs: list[AnyWire], rate: Fraction, length: TDim
    ) -> StreamWire:
        is_unknown = any(isinstance(wire, FreeWire) and wire.first_frames(1) is None for wire in inputs)
        lag = require_lag(self.builder, length, rate, node.name) if band.ahead > 0 else None
        frames = self.builder.frames(rate)

        def offset_of_keys(wait: int) -> int:
            offsets = [0 if is_unknown else -wait, *([] if lag is None else [lag])]
            for slot, wire in enumerate(inputs):
                if isinstance(wire, StreamWire):
                    offsets.append(wire.fact.offset - (wait if slot == 0 else 0))
            return max(offsets)

        waits = range(max(0, -band.back), band.ahead) if band.ahead_by_frame else ()
        wait = next(
            (
                wait
                for wait in waits
                if _have_all_keys(band.ahead_by_frame, frames, offset_of_keys(wait), wait)
            ),
            band.ahead,
        )
        at_keys, offset = offset_of_keys(wait), offset_of_keys(wait) + wait
        streams = [
            self._delayed_stream(wire, at_keys if slot else offset, node.name)
            for slot, wire in enumerate(inputs)
        ]
        reads = [streams[0].outlet]
        reads += [self.builder.window(stream, band.back + wait, node.name) for stream in streams[1:]]
        fact = StreamFact(band.axis, length, rate, offset)
        outlet = self.builder.add(node.name, band.make_op(offset, length), reads, fact)
        return self.builder.require_frames(StreamWire(outlet, fact), node.name)

    def _delayed_stream(self, wire: AnyWire, offset: int, name: str) -> StreamWire:
        if isinstance(wire, FreeWire):
            return wire.wire_at(offset)
        assert isinstance(wire, StreamWire)
        return self.builder.delay(wire, offset, name)

    # positions and tails

    def _schedule_positional(
        self,
        node: Node[TypedFact, Op],
        relation: Positional,
        inputs: list[AnyWire],
        flow: WireFlow,
        length: TDim,
    ) -> FreeWire:
        reads = [static_outlet(wire) for wire in inputs]

        def first_frames(frames: int) -> Array | None:
            values = [self.builder.known_value(outlet) for outlet in reads]
            if any(value is None for value in values):
                return None
            operands = [value for value in values if value is not None]
            op = relation.make_op(0, frames)
            if isinstance(op, Stateful):
                return op.step(operands, op.initial_state(), Clock(self.builder.symbol))[0]
            return evaluate_prefix(op, operands, node.name)[0]

        @cache
        def wire_at(offset: int) -> StreamWire:
            op = relation.make_op(offset, self.builder.frames(flow.rate))
            prefix = first_frames(-offset) if offset < 0 else None
            fact = StreamFact(relation.axis, length, flow.rate, offset, prefix)
            return self.builder.require_frames(
                StreamWire(self.builder.add(node.name, op, reads, fact), fact), node.name
            )

        return FreeWire(relation.axis, length, flow.rate, wire_at, first_frames)

    def _schedule_tail(
        self, node: Node[TypedFact, Op], tail: Tail, wire: AnyWire, length: TDim
    ) -> StreamWire:
        stream = (
            wire
            if isinstance(wire, StreamWire)
            else fix_offset(self.builder, wire, Ends(tail.axis, TDim.of(0), TDim.of(1)), node.name)
        )
        if stream.fact.offset < 0:
            stream = self.builder.delay(stream, 0, node.name)
        stream = delay_by_lag(self.builder, stream, node.name)
        fact = self.builder.graph.fact(stream.outlet)
        op = LastFrames(tail.axis, tail.frames, stream.fact.offset, stream.fact.length, fact)
        out = StreamFact(tail.axis, length, Fraction(0), 0)
        return StreamWire(self.builder.add(node.name, op, [stream.outlet], out), out)


def _have_all_keys(ahead_by_frame: Sequence[int], frames: int, offset_of_keys: int, wait: int) -> bool:
    """Return whether each frame, ``wait`` frames after the keys, is in a pulse that has all keys that it needs.

    Frames of each phase of their period meet every place in a pulse that is equal modulo the common divisor of both, so
    the last such place decides.
    """
    divisor = math.gcd(len(ahead_by_frame), frames)
    for place in range(divisor):
        first = (place - offset_of_keys - wait) % divisor
        if max(ahead_by_frame[first::divisor]) - wait >= divisor - place:
            return False
    return True
