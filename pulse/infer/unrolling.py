"""Bodies wired in place of the nodes that run them, choices of branches, and the limits of loops that are unrolled."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat

import numpy as np

from pulse.errors import PulseError
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.ops.source import Const, Source
from pulse.support.wording import count_of
from pulse.typed import TypedGraph, TypedNetwork, add_constant, sources
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
    """Wire a body into a graph whose wires feed its inputs, and return its outputs.

    Raises FactError: an op refuses its inputs
    """
    inputs = {outlet: body.graph.label(outlet) for outlet in sources(body.graph)}
    present = {outlet: feeds[name] for outlet, name in inputs.items() if name in feeds}
    return graft(body, body.graph.outputs, graph, present)


def graft(
    body: TypedNetwork,
    targets: Sequence[OutletId],
    graph: TypedGraph,
    present: Mapping[OutletId, OutletId],
    prefix: str = "",
) -> list[OutletId]:
    """Wire the nodes that some outlets of a body need into a graph, and return these outlets there.

    present  outlets of the body that are wires of the graph already
    prefix   prefix of the names of new nodes
    Raises   FactError: an op refuses its inputs; NotUnrolledError: an input is not in ``present``
    """
    wires = dict(present)
    for node_id in body.graph.order_after(present, targets):
        node = body.graph.nodes[node_id]
        if isinstance(node.op, Source):
            raise NotUnrolledError
        if isinstance(node.op, Const):
            outlets = [add_constant(graph, prefix + node.name, node.op.value)]
        else:
            outlets = wire(graph, prefix + node.name, node.op, [wires[outlet] for outlet in node.inputs])
        for old, new in zip(node.wires, outlets):
            wires.setdefault(old, new)
    return [wires[outlet] for outlet in targets]


def choose_branch(
    node: NodeContext, condition: OutletId, branch: Callable[[bool], Sequence[OutletId]], names: Sequence[str]
) -> list[OutletId]:
    """Wire both branches of a node, and a choice between their results; input 0 of the node is its condition.

    branch  wires the branch that runs if the condition is true, or false
    names   the names of the results, in order; a result without one is named after the node
    Raises  LoadError: a branch does not load, or the two differ in number, types or shapes of results
    """
    known_late = f"its condition {node.graph.label(node.input(0))} is only known while running"
    advice = "give inputs fixed sizes or values so that the condition is constant"
    branches: list[Sequence[OutletId]] = []
    for name, value in (("then_branch", True), ("else_branch", False)):
        try:
            branches.append(branch(value))
        except PulseError as error:
            raise node.error(
                f"{known_late}, so both branches are needed, and the {name} does not load: {error}; {advice}"
            ) from error
    then, otherwise = branches
    if len(then) != len(otherwise):
        raise node.error(
            f"its branches make {len(then)} and {count_of(len(otherwise), 'value')}; give both the same results"
        )
    outlets: list[OutletId] = []
    for name, yes, no in zip(chain(names, repeat("")), then, otherwise):
        left, right = node.graph.fact(yes), node.graph.fact(no)
        if not left.agrees(right):
            raise node.error(f"{known_late}, and the branches differ: {left} and {right}; {advice}")
        outlets.append((node.with_name(name) if name else node).apply("where", condition, yes, no))
    return outlets
