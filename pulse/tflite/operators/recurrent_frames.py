"""Recurrent layers whose frames are wired op by op: a scan of the update of the states by one frame."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from pulse.graph import OutletId
from pulse.infer.scan_body import ScanBody
from pulse.ops.scan import ScanAxis
from pulse.ops.shape import AddAxis, RemoveAxis
from pulse.tflite.node import TfliteNode

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
    scanned, scan_axis = ScanBody(), ScanAxis(axis)
    part = scanned.add_frames("frame", fact.without_axis(axis), x, scan_axis)
    before = [
        scanned.add_state(f"state{index}", node.graph.fact(state), state)
        for index, state in enumerate(states)
    ]
    after = frame(replace(node, graph=scanned.graph), part, before)
    results = scanned.wire(node, f"{node.wire_name}.frames", after, [after[0]], scan_axis)
    return [node.name_result(results[0]), *results[1:]]
