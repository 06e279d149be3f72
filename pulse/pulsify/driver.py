"""``pulsify``: relate the ops, fit the pulse, schedule the wires, describe the ports."""

from typing import TypedDict

from pulse.dim import Symbol
from pulse.errors import PulsifyError, Refusal
from pulse.facts import PulsedFact
from pulse.graph import Graph, OutletId
from pulse.interface import Port
from pulse.ops.op import Op
from pulse.ops.source import Const, Source
from pulse.pulsify.faults import add_fault_counters, fault_waits
from pulse.pulsify.graph_builder import PulsedGraphBuilder
from pulse.pulsify.multiples import advice_for_multiple, in_multiples
from pulse.pulsify.network import PulsedNetwork, ScheduledWire
from pulse.pulsify.preparation import prepare_model
from pulse.pulsify.receptive_fields import receptive_fields
from pulse.pulsify.schedule import Scheduler
from pulse.pulsify.stream_relations import StreamRelations, relate
from pulse.pulsify.stream_wires import AnyWire, FreeWire, MirroredWire, StreamWire
from pulse.support.wording import spell
from pulse.typed import TypedNetwork


class PulsifyOptions(TypedDict, total=False):
    """The options of ``pulsify``, for functions that pass them on as ``**options``.

    min_pulse    the minimum for the default of ``pulse``
    align        delay the earlier outputs so that all belong to the same moment of the input
    max_context  the most frames of the symbol in a stream, for attention to all earlier frames. Memory and work grow
                 with it, and longer streams are refused
    """

    min_pulse: int
    align: bool
    max_context: int | None


def pulsify(
    model: TypedNetwork,
    symbol: str | Symbol | None = None,
    pulse: int | None = None,
    *,
    min_pulse: int = 1,
    align: bool = False,
    max_context: int | None = None,
) -> PulsedNetwork:
    """Rewrite a model so that it takes ``pulse`` frames of ``symbol`` at a time and outputs exact results.

    symbol   the stream; may be omitted if there is only one
    pulse    frames of the symbol in each step; default: the smallest possible
    min_pulse, align, max_context  see ``PulsifyOptions``
    Raises   PulsifyError: lists every node that cannot stream, or the pulses that would suit
    """
    stream = model.find_symbol(symbol)
    if max_context is not None and max_context < 1:
        raise PulsifyError(
            f"{spell('max_context', max_context)} is not a positive number of frames; give 1 or more"
        )
    try:
        typed, related = _relate(model, stream, max_context)
    except PulsifyError as error:
        raise _with_advice(error, model, stream, max_context) from None
    frames = related.fit(typed.graph, pulse, min_pulse)
    builder = PulsedGraphBuilder(Graph[PulsedFact, Op](), stream, frames)
    scheduler = Scheduler(typed, related, builder, {})
    scheduler.run()
    ports = _outputs(typed, builder, scheduler, align)
    wires = {
        outlet: ScheduledWire(*_port_wire(builder, wire))
        for outlet, wire in scheduler.wires.items()
        if not isinstance(wire, FreeWire | MirroredWire)
    }
    inputs = tuple(_input_port(builder, outlet) for outlet in builder.graph.inputs)
    receptive = receptive_fields(typed, related)
    fields = {
        name: receptive[outlet]
        for name, outlet in zip(typed.graph.output_names, typed.graph.outputs)
        if outlet in receptive
    }
    builder.graph.views = typed.graph.views_in(_pulsed_ids(typed, builder)) if typed.graph.views else {}
    checks = add_fault_counters(builder, builder.graph.outputs)
    return PulsedNetwork(
        graph=builder.graph,
        typed=typed,
        symbol=stream,
        pulse=frames,
        inputs=inputs,
        outputs=ports,
        wires=wires,
        receptive_fields=fields,
        extra_awaited_wires=fault_waits(builder, checks),
        checks=checks,
    )


def _relate(
    model: TypedNetwork, stream: Symbol, max_context: int | None
) -> tuple[TypedNetwork, StreamRelations]:
    """Return the model as only streaming needs it, and how its nodes stream. Raises PulsifyError: some cannot."""
    typed, refused = prepare_model(model, stream), dict[str, Refusal | None]()
    if any(node.op.normalises_scores for node in typed.graph.nodes):
        from pulse.pulsify.bands.attention import band_attention

        banded = band_attention(typed, stream, max_context)
        typed, refused = banded.model, banded.refused
        if banded.limited:
            typed.scope = typed.scope.with_assumption(f"{stream.name} <= {max_context}")
    return typed, relate(typed, stream, refused)


def _with_advice(
    error: PulsifyError, model: TypedNetwork, stream: Symbol, max_context: int | None
) -> PulsifyError:
    """Return the refusal of a model; with a way out if the model streams over multiples of a number of frames."""
    grouped = in_multiples(model, stream) if error.refusals else None
    if grouped is None:
        return error
    multiple, groups = grouped
    try:
        _relate(groups, groups.find_symbol(stream.name), max_context)
    except PulsifyError:
        return error
    return PulsifyError(error.message, error.refusals, advice_for_multiple(model, stream, multiple))


def _pulsed_ids(typed: TypedNetwork, builder: PulsedGraphBuilder) -> dict[int, list[int]]:
    """Map each node of the typed model to its nodes in the pulsed model, by name."""
    node_ids = {node.name: node.id for node in typed.graph.nodes if not isinstance(node.op, Source | Const)}
    new_ids: dict[int, list[int]] = {}
    for node in builder.graph.nodes:
        name = node.name
        while name not in node_ids and "." in name:
            name = name.rpartition(".")[0]
        if name in node_ids and not isinstance(node.op, Source | Const):
            new_ids.setdefault(node_ids[name], []).append(node.id)
    return new_ids


def _port_wire(builder: PulsedGraphBuilder, wire: AnyWire) -> tuple[OutletId, PulsedFact]:
    if isinstance(wire, StreamWire):
        fact = builder.graph.fact(wire.outlet)
        return wire.outlet, PulsedFact(fact.dtype, fact.shape, fact.value, wire.fact)
    assert isinstance(wire, OutletId)
    return wire, builder.graph.fact(wire)


def _input_port(builder: PulsedGraphBuilder, outlet: OutletId) -> Port:
    fact = builder.graph.fact(outlet)
    return Port.of(builder.graph.label(outlet), fact, fact.stream)


def _outputs(
    typed: TypedNetwork, builder: PulsedGraphBuilder, scheduler: Scheduler, align: bool
) -> tuple[Port, ...]:
    graph = typed.graph
    streams: list[StreamWire | OutletId] = []
    for name, outlet in zip(graph.output_names, graph.outputs):
        wire = scheduler.write_ends(outlet)
        if isinstance(wire, FreeWire):
            wire = wire.wire_at(0)
        streams.append(_without_prefix(builder, wire, name) if isinstance(wire, StreamWire) else wire)
    moving = [wire for wire in streams if isinstance(wire, StreamWire) and wire.fact.rate > 0]
    if not any(outlet in scheduler.related.flows for outlet in graph.outputs):
        raise PulsifyError("no output depends on the stream; name another symbol, or keep other outputs")
    if align and moving:
        latest = max(wire.fact.offset / wire.fact.rate for wire in moving)
        streams = [
            builder.delay(wire, -int(-latest * wire.fact.rate // 1), name)
            if isinstance(wire, StreamWire) and wire.fact.rate > 0
            else wire
            for name, wire in zip(graph.output_names, streams)
        ]
    outlets = [wire.outlet if isinstance(wire, StreamWire) else wire for wire in streams]
    builder.graph.set_outputs(outlets, graph.output_names)
    return tuple(
        Port.of(name, builder.graph.fact(outlet), wire.fact if isinstance(wire, StreamWire) else None)
        for name, outlet, wire in zip(graph.output_names, outlets, streams)
    )


def _without_prefix(builder: PulsedGraphBuilder, wire: StreamWire, name: str) -> StreamWire:
    """Delay an output until it has no prefix."""
    return wire if wire.fact.rate == 0 else builder.delay(wire, max(0, wire.fact.offset), name)
