"""Recurrent layers whose frames are wired op by op: a scan of the update of the states by one frame."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from pulse.graph import OutletId
from pulse.ops.scan import Scan, ScanAxis
from pulse.ops.shape import AddAxis, RemoveAxis
from pulse.support.budget import current_spending
from pulse.tflite.node import TfliteNode
from pulse.typed import TypedGraph, TypedNetwork, add_source, sources
from pulse.wiring import wire

Frame: TypeAlias = Callable[[TfliteNode, OutletId, Sequence[OutletId]], Sequence[OutletId]]
"""(node, frame [B, …], states) -> the states after the frame; the first one is also the output."""


def scan_frames(
    node: TfliteNode, x: OutletId, states: Sequence[OutletId], frame: Frame, first_axis: bool
) -> list[OutletId]:
    """Return all frames, and the states after them.

    x           [B, …] as one frame; [B, T, …], or [T, B, …] where ``first_axis`` is set
    """
    fact = node.graph.fact(x)
    axis = 0 if first_axis else 1
    if fact.rank == 2:
        after = frame(node, x, states)
        return [node.name_result(after[0]), *after]
    if fact.shape[axis] == 1:
        after = frame(node, node.wire(RemoveAxis(axis), [x], "frame"), states)
        return [node.wire(AddAxis(axis), [after[0]]), *after]
    graph = TypedGraph()
    names = [f"state{index}" for index in range(len(states))]
    for name, source_fact in zip(("frame", *names), (fact.without_axis(axis), *map(node.graph.fact, states))):
        add_source(graph, name, source_fact)
    graph.inputs = sources(graph)
    after = frame(replace(node, graph=graph), graph.inputs[0], graph.inputs[1:])
    graph.set_outputs([*after, after[0]], [*(f"{name}.next" for name in names), "made"])
    body = TypedNetwork(graph, node.scope, node.wire_name, spending=current_spending())
    scan_axis = ScanAxis(axis)
    op = Scan(body, tuple(names), ("frame",), (), (scan_axis,), (scan_axis,))
    results = wire(node.graph, f"{node.wire_name}.frames", op, [x, *states])
    return [node.name_result(results[0]), *results[1:]]
