"""Counters of faults in a pulsed graph: which values are checked, and in which frames."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.interface import AwaitedWire
from pulse.ops.check import Check, Site
from pulse.ops.fault import CheckTime, CountFaults
from pulse.ops.op import Op
from pulse.ops.stateful import Stateful
from pulse.pulsify.graph_builder import PulsedGraphBuilder
from pulse.pulsify.lengths import lag
from pulse.pulsify.network import PulsedGraph, PulsedNetwork, PulsedNode
from pulse.pulsify.stream_wires import StreamWire


def find_known_at_end(graph: PulsedGraph, order: Iterable[int]) -> set[int]:
    """Return nodes that do not stream but depend on a stream: their values are meaningful in the last pulse only."""
    moving, known_at_end = set[OutletId](graph.inputs), set[int]()
    moving = {outlet for outlet in moving if graph.fact(outlet).stream is not None}
    for node_id in order:
        node = graph.nodes[node_id]
        if moving.isdisjoint(node.inputs) and not isinstance(node.op, Stateful):
            continue
        moving.update(node.wires)
        if any(outlet.fact.stream is None or outlet.fact.stream.rate == 0 for outlet in node.outputs):
            known_at_end.add(node_id)
    return known_at_end


def add_fault_counters(builder: PulsedGraphBuilder, targets: Iterable[OutletId]) -> tuple[OutletId, ...]:
    """Add a counter for each operand whose values can be faults; constants without faults need none.

    targets  the wires that each pulse computes
    """
    graph = builder.graph
    order = graph.order(list(targets))
    known_at_end = find_known_at_end(graph, order)
    counters: list[OutletId] = []
    for node_id in order:
        node = graph.nodes[node_id]
        facts = [graph.fact(outlet) for outlet in node.inputs]
        for check in node.op.checks([fact.sizes for fact in facts], [fact.dtype for fact in facts]):
            value = facts[check.slot].value
            if value is not None and not check.find_failing(value).any():
                continue
            counter = _add_counter(builder, node, check, node_id in known_at_end)
            if counter is not None:
                counters.append(counter)
    return tuple(counters)


def _add_counter(
    builder: PulsedGraphBuilder, node: PulsedNode, check: Check, is_known_at_end: bool
) -> OutletId | None:
    """Add the counter of one operand; None if no delay makes sure that its frames exist."""
    outlet, result = node.inputs[check.slot], node.outputs[0].fact
    operand = builder.graph.fact(outlet)
    axis = operand.stream
    if is_known_at_end:
        if axis is None:
            return _add(builder, node, check, outlet, "end")
        return _add(builder, node, check, outlet, "end", axis.axis, 0, axis.length)
    if axis is None:
        return _add(builder, node, check, outlet, "always")
    stream = result.stream if result.stream is not None and result.frames == operand.frames else axis
    sure = lag(stream.length, stream.rate, builder.symbol, builder.pulse)
    if sure is None:
        return None
    offset = max(stream.offset, sure)
    stream_wire = StreamWire(outlet, replace(stream, axis=axis.axis, prefix=None))
    later = builder.delay(stream_wire, offset, node.name).outlet
    return _add(builder, node, check, later, "frames", axis.axis, offset, stream.length, stream.prefix_frames)


def _add(
    builder: PulsedGraphBuilder,
    node: PulsedNode,
    check: Check,
    outlet: OutletId,
    when: CheckTime,
    *location: Any,
) -> OutletId:
    name = f"{node.name}.check{check.slot}" + ("" if check.column is None else f".{check.column}")
    return builder.add(name, CountFaults(check, node.name, node.op.name, when, *location), [outlet], None)


def find_unchecked_bodies(model: PulsedNetwork) -> set[int]:
    """Return nodes whose bodies are not checked for faults.

    In a file read back, their values before the stream begins are unknown.
    """
    order = model.graph.order(model.targets)
    known_at_end = set(order) if model.is_reopened else find_known_at_end(model.graph, order)
    return {node_id for node_id in known_at_end if not isinstance(model.graph.nodes[node_id].op, Stateful)}


def body_sites(name: str, op: Op) -> Iterator[Site]:
    """Yield the checked operands in the bodies of a node."""
    for graph in op.bodies:
        for node in map(graph.nodes.__getitem__, graph.order()):
            facts = [graph.fact(outlet) for outlet in node.inputs]
            label = f"{name}/{node.name}"
            if all(dim.is_const for fact in facts for dim in fact.shape):
                for check in node.op.checks([fact.sizes for fact in facts], [fact.dtype for fact in facts]):
                    yield label, node.op.name, check
            yield from body_sites(label, node.op)


def fault_waits(builder: PulsedGraphBuilder, checks: Iterable[OutletId]) -> tuple[AwaitedWire, ...]:
    """Wait for one pulse after the last frame, if some operand is checked only in the last pulse."""
    ops = [builder.graph.node(outlet).op for outlet in checks]
    if not any(isinstance(op, CountFaults) and op.when == "end" for op in ops):
        return ()
    return (AwaitedWire(builder.pulse, 1, TDim.of(builder.symbol)),)
