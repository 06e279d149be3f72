"""Bodies wired in place of the nodes that run them, and the limits of loops that are unrolled."""

from collections.abc import Mapping

import numpy as np

from pulse.graph import OutletId
from pulse.ops.source import Const, Source
from pulse.typed import TypedGraph, TypedNetwork, add_constant
from pulse.wiring import wire

MAX_ITERATIONS = 1024
"""Maximum number of iterations of an unrolled loop; a loop of more is one op."""

MAX_NODES = 10_000
"""Maximum number of nodes of an unrolled loop, with all loops in it; a loop of more is one op."""

ENDLESS = np.iinfo(np.int64).max
"""The trip count of a loop that only its condition ends."""


class NotUnrolledError(Exception):
    """A loop can be neither unrolled nor run over frames: the number of iterations is unknown or too large."""


def retire_from(graph: TypedGraph, first: int) -> None:
    """Remove the nodes from a number on, which a failed attempt has added."""
    for node_id in reversed(range(first, len(graph.nodes))):
        graph.retire(node_id, first)


def inline(graph: TypedGraph, body: TypedNetwork, feeds: Mapping[str, OutletId]) -> list[OutletId]:
    """Wire a body into a graph whose wires feed its inputs, and return its outputs. Raises FactError."""
    wires: dict[OutletId, OutletId] = {}
    for number in body.graph.order():
        node = body.graph.nodes[number]
        op = node.op
        if isinstance(op, Source):
            outlets = [feeds[node.name]]
        elif isinstance(op, Const):
            outlets = [add_constant(graph, node.name, op.value)]
        else:
            outlets = wire(graph, node.name, op, [wires[outlet] for outlet in node.inputs])
        wires.update({OutletId(number, slot): outlet for slot, outlet in enumerate(outlets)})
    return [wires[outlet] for outlet in body.graph.outputs]
