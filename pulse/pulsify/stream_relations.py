"""First pass: the stream axis and rate of every wire, the relation of every node, and all refusals at once."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, permutations
from typing import TypeAlias

from pulse.dim import Symbol, TDim
from pulse.errors import DimError, PulsifyError, Refusal
from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.ops.dims import at_most_one
from pulse.ops.op import (
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
    relation_name,
)
from pulse.ops.source import Const, Source
from pulse.pulsify.lengths import determines_length, never_shrinks
from pulse.support.bounds import MAX_FRAMES
from pulse.support.record import record
from pulse.support.wording import count_of, spell
from pulse.typed import TypedGraph, TypedNetwork, TypedNode

Objection: TypeAlias = tuple[str, str]
"""A reason why a node cannot stream, and what would help."""


@record
class WireFlow:
    """How a wire streams: its axis and its rate.

    The rate is 0 if the wire is known at the end only; then it may have no stream axis.
    """

    axis: int | None
    rate: Fraction

    @property
    def stream_axis(self) -> int:
        """The stream axis of a wire that must have one."""
        assert self.axis is not None
        return self.axis

    @property
    def final(self) -> bool:
        """Whether the wire is known only when the stream has ended."""
        return self.rate == 0


@record
class StreamRelations:
    """The results of the first pass.

    symbol     the frames of the stream
    order      the nodes, in topological order
    flows      streaming outlet -> its axis and rate
    relations  node -> how its outputs depend on the stream
    """

    symbol: Symbol
    order: tuple[int, ...]
    flows: dict[OutletId, WireFlow]
    relations: dict[int, Relation]

    @property
    def divisor(self) -> int:
        """The smallest pulse with a whole number of frames on every wire, and of groups in every window."""
        frames = [flow.rate.denominator for flow in self.flows.values()]
        groups = [self._groups(node_id).denominator for node_id in self.relations]
        return math.lcm(*frames, *groups)

    def _groups(self, node_id: int) -> Fraction:
        """Return groups of a window for each frame of the symbol; for other relations, frames."""
        relation, rate = self.relations[node_id], self.flows[OutletId(node_id)].rate
        return rate / relation.up if isinstance(relation, Window) else rate

    def fit(self, graph: TypedGraph, pulse: int | None, min_pulse: int) -> int:
        """Check the pulse, or return the smallest possible one of at least ``min_pulse``.

        Raises PulsifyError: the pulse is too large, or not a positive multiple of the divisor
        """
        divisor = self.divisor
        if pulse is None and min_pulse <= divisor:
            return divisor
        if pulse is None:
            pulse = -(-min_pulse // divisor) * divisor
        if type(pulse) is not int:
            raise PulsifyError(
                f"{spell('pulse', pulse)} is not a whole number of frames; the smallest is {divisor}"
            )
        if pulse < 1:
            raise PulsifyError(
                f"{spell('pulse', pulse)} is not a positive number of frames; the smallest is {divisor}"
            )
        if pulse > MAX_FRAMES:
            raise PulsifyError(
                f"a pulse of {count_of(pulse, 'frame')} is more than {MAX_FRAMES}: choose a smaller one with "
                f"{spell('pulse')}"
            )
        if pulse % divisor == 0:
            return pulse
        below, above = pulse // divisor * divisor, -(-pulse // divisor) * divisor
        choice = f"{below} or {above}" if below else f"{above}"
        for node_id in self.relations:
            node, flow, groups = graph.nodes[node_id], self.flows[OutletId(node_id)], self._groups(node_id)
            if (flow.rate * pulse).denominator != 1:
                amount = count_of(flow.rate * pulse, "frame")
            elif (groups * pulse).denominator != 1:
                amount = f"{count_of(groups * pulse, 'group')} of {count_of(flow.rate / groups, 'frame')}"
            else:
                continue
            raise PulsifyError(
                f"{node.name} ({node.op.name}): pulse {pulse} makes {amount} on axis {flow.axis}; it is not a multiple "
                f"of {divisor}: use {choice}"
            )
        raise PulsifyError(f"{spell('pulse', pulse)} is not a multiple of {divisor}: use {choice}")


def relate(
    model: TypedNetwork, symbol: Symbol, refused: Mapping[str, Refusal | None] | None = None
) -> StreamRelations:
    """Find how each wire and node streams. Raises PulsifyError: some nodes cannot.

    refused  name of a node that is known not to stream -> why; None if another node's refusal covers it
    """
    graph = model.graph
    flows: dict[OutletId, WireFlow] = {}
    relations: dict[int, Relation] = {}
    refusals: list[Refusal] = []
    failed: set[int] = set()
    order = tuple(graph.order())
    for node_id in order:
        node = graph.nodes[node_id]
        if any(outlet.node in failed for outlet in node.inputs):
            failed.add(node_id)
            continue
        if refused is not None and node.name in refused:
            failed.add(node_id)
            refusal = refused[node.name]
            if refusal is not None:
                refusals.append(replace(refusal, origin=model.origins.get(node.name, "")))
            continue
        relation = _relate_node(graph, node, symbol, flows)
        if isinstance(relation, Refusal):
            refusals.append(replace(relation, origin=model.origins.get(node.name, "")))
            failed.add(node_id)
        elif relation is not None:
            relations[node_id], output_flows = relation
            flows.update(zip(node.wires, output_flows))
    if refusals:
        count = "1 node" if len(refusals) == 1 else f"{len(refusals)} nodes"
        raise PulsifyError(f"{model.title} cannot be streamed over {symbol.name}: {count} refused", refusals)
    sources = [(graph.fact(outlet), flows[outlet]) for outlet in graph.inputs if outlet in flows]
    if not sources:
        raise PulsifyError(f"no input streams over {symbol.name}")
    if not any(determines_length(fact.shape[flow.stream_axis], flow.rate, symbol) for fact, flow in sources):
        fact, flow = sources[0]
        name = graph.label(graph.inputs[0])
        sizes = ",".join("U" if axis == flow.stream_axis else str(dim) for axis, dim in enumerate(fact.shape))
        raise PulsifyError(
            f"{name}: {fact.shape[flow.stream_axis]} of its frames do not prove that there are "
            f"{symbol.name} frames; name its own length, as in {spell('inputs', {name: sizes})}"
        )
    return StreamRelations(symbol, order, flows, relations)


def _refusal(
    node: TypedNode, axis: int | None, relation: Relation | str, reason: str, advice: str
) -> Refusal:
    name = relation if isinstance(relation, str) else relation_name(relation)
    return Refusal(node.name, node.op.name, axis, name, reason, advice)


def _relate_node(
    graph: TypedGraph, node: TypedNode, symbol: Symbol, flows: dict[OutletId, WireFlow]
) -> tuple[Relation, list[WireFlow]] | Refusal | None:
    facts = [outlet.fact for outlet in node.outputs]
    incoming = [flows.get(outlet) for outlet in node.inputs]
    has_stream_axis = any(fact.symbolic_axes(symbol) for fact in facts)
    if isinstance(node.op, Source):
        return _relate_source(node, node.outputs[0].fact, symbol)
    if isinstance(node.op, Const):
        if _is_constant_in(node.op, symbol):
            return None
        return _refusal(
            node,
            None,
            "whole",
            "its value depends on the length of the stream",
            "compute lengths from constants only",
        )
    streaming = [flow for flow in incoming if flow is not None]
    if not streaming and not has_stream_axis:
        return None
    if streaming and all(flow.axis is None for flow in streaming) and not has_stream_axis:
        return Final(), [WireFlow(None, Fraction(0)) for _ in facts]
    if not streaming and not node.op.positional:
        reason = "its output has the stream's length, but none of its inputs streams"
        return _refusal(node, None, "whole", reason, "make the length a constant")
    try:
        inputs = graph.input_facts(node)
        relation = node.op.relation(inputs, [flow and flow.axis for flow in incoming])
        streams = [fact for fact, flow in zip(inputs, incoming) if flow is not None]
        refusal = _find_refusal(node, relation, streams, streaming, symbol)
        if refusal is not None:
            return refusal
        outgoing = _outgoing_flows(relation, streaming, symbol)
        return _refuse_unsteady(node, relation, outgoing, symbol) or (relation, outgoing)
    except DimError as error:
        advice = "use lengths that are simple functions of the stream's length"
        return _refusal(node, streaming[0].axis if streaming else None, "whole", str(error), advice)


def _refuse_unsteady(
    node: TypedNode, relation: Relation, flows: list[WireFlow], symbol: Symbol
) -> Refusal | None:
    """Return the refusal of an output whose length does not keep up with the stream."""
    for outlet, flow in zip(node.outputs, flows):
        if flow.axis is None or (flow.final and not isinstance(relation, Positional)):
            continue
        length = outlet.fact.shape[flow.axis]
        if flow.rate <= 0 or not never_shrinks(length, symbol):
            reason = f"its length {length} does not grow with {symbol.name}"
            return _refusal(node, flow.axis, relation, reason, "use lengths that grow with the stream")
    return None


def _shape_text(fact: TypedFact, symbol: Symbol) -> str:
    return ",".join(str(dim) if dim.symbols <= {symbol} else "1" for dim in fact.shape)


def _is_constant_in(op: Const, symbol: Symbol) -> bool:
    if op.value.dtype != object:
        return True
    return all(symbol not in TDim.of(dim).symbols for dim in op.value.ravel().tolist())


def _relate_source(
    node: TypedNode, fact: TypedFact, symbol: Symbol
) -> tuple[Relation, list[WireFlow]] | Refusal | None:
    others = sorted({other.name for dim in fact.shape for other in dim.symbols} - {symbol.name})
    if others:
        return _refusal(
            node,
            None,
            "source",
            f"its shape {fact} has other symbols besides {symbol.name}: {', '.join(others)}",
            f"give them sizes, such as {spell('inputs', {node.name: _shape_text(fact, symbol)})}",
        )
    axes = fact.symbolic_axes(symbol)
    if not axes:
        return None
    if len(axes) > 1:
        return _refusal(
            node,
            axes[0],
            "source",
            f"{symbol.name} is on several of its axes: {axes}",
            "stream over one axis",
        )
    rate = fact.shape[axes[0]].slope(symbol)
    if rate <= 0:
        return _refusal(
            node,
            axes[0],
            "source",
            f"its length {fact.shape[axes[0]]} does not grow with {symbol.name}",
            "choose another symbol",
        )
    return Pointwise((axes[0],)), [WireFlow(axes[0], rate)]


def _find_refusal(
    node: TypedNode,
    relation: Relation,
    facts: Sequence[TypedFact],
    streaming: Sequence[WireFlow],
    symbol: Symbol,
) -> Refusal | None:
    """Return the refusal of a node that cannot stream, by the first objection; None if there is none."""
    objections = chain(
        _objections_to_flows(relation, streaming),
        _objections_to_lengths(node, relation, facts, streaming),
        _objections_to_sizes(node, relation, symbol),
    )
    first = next(objections, None)
    if first is None:
        return None
    return _refusal(node, streaming[0].axis if streaming else None, relation, *first)


def _objections_to_flows(relation: Relation, streaming: Sequence[WireFlow]) -> Iterator[Objection]:
    """Yield the reasons why the inputs cannot stream together."""
    if isinstance(relation, Whole):
        yield relation.reason, relation.advice
    if not streaming and not isinstance(relation, Positional):
        yield (
            "its output has the stream's length, but none of its inputs streams",
            "make the length a constant",
        )
    if any(flow.final for flow in streaming) and not (
        isinstance(relation, Pointwise) and all(flow.final for flow in streaming)
    ):
        yield (
            "it needs frames that are known only when the stream has ended",
            "use them only as an output of the model",
        )
    rates = sorted({flow.rate for flow in streaming})
    if isinstance(relation, Pointwise | Cumulative | Banded) and len(rates) > 1:
        yield f"its inputs stream at different rates {', '.join(map(str, rates))}", "resample one of them"


def _objections_to_lengths(
    node: TypedNode, relation: Relation, facts: Sequence[TypedFact], streaming: Sequence[WireFlow]
) -> Iterator[Objection]:
    """Yield the reasons why the lengths of inputs and outputs do not fit each other."""
    if not isinstance(relation, Pointwise):
        return
    lengths = {fact.shape[flow.axis] for fact, flow in zip(facts, streaming) if flow.axis is not None}
    lengths |= {outlet.fact.shape[at] for outlet, at in zip(node.outputs, relation.axes)}
    if any(at_most_one(*pair) for pair in permutations(lengths, 2)):
        yield (
            "it combines one frame with every frame of the stream",
            "take the first frame (x[..., :1]) by elementwise functions only, or make it an input",
        )


def _objections_to_sizes(node: TypedNode, relation: Relation, symbol: Symbol) -> Iterator[Objection]:
    """Yield the sizes that are not constant: padding, frames that a pulse needs at once, other axes of the outputs."""
    ends = relation.ends if isinstance(relation, Window) else relation if isinstance(relation, Ends) else None
    if ends is not None and not ends.before.is_const:
        yield (
            f"the padding before the first frame, {ends.before}, depends on the length",
            "pad the start by a constant",
        )
    buffered = max(_buffer_frames(relation), int(ends.before) if ends is not None else 0)
    if buffered > MAX_FRAMES:
        yield (
            f"it needs {count_of(buffered, 'frame')} at once, more than {MAX_FRAMES}",
            "use shorter windows and padding",
        )
    for outlet, out_axis in zip(node.outputs, _axes(relation)):
        if any(other != out_axis for other in outlet.fact.symbolic_axes(symbol)):
            yield (
                f"its output {outlet.fact} has {symbol.name} on several axes",
                "limit the reach over time by a window",
            )


def _buffer_frames(relation: Relation) -> int:
    """Return the most frames that a relation reads or makes at once."""
    if isinstance(relation, Window):
        return max(relation.span, relation.stride, relation.up)
    return relation.frames if isinstance(relation, Tail) else 0


def _axes(relation: Relation) -> Iterable[int | None]:
    if isinstance(relation, Pointwise | Cumulative):
        return relation.axes
    assert not isinstance(relation, Whole | Final)
    return (relation.axis,)


def _outgoing_flows(relation: Relation, streaming: list[WireFlow], symbol: Symbol) -> list[WireFlow]:
    if isinstance(relation, Positional):
        return [WireFlow(relation.axis, relation.wanted.slope(symbol))]
    if isinstance(relation, Tail):
        return [WireFlow(relation.axis, Fraction(0))]
    rate = streaming[0].rate
    if isinstance(relation, Window):
        rate = rate * relation.up / relation.stride
    return [WireFlow(axis, Fraction(0) if axis is None else rate) for axis in _axes(relation)]
