"""Apply rewrites until none fits."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from pulse.declutter.affine import AFFINE
from pulse.declutter.caches import CACHES
from pulse.declutter.codes import CODES
from pulse.declutter.common_subexpressions import COMMON
from pulse.declutter.conditions import CONDITIONS
from pulse.declutter.crops import CROPS
from pulse.declutter.movement import BROADCASTS, MOVEMENT
from pulse.declutter.noops import CONSTANTS, NOOPS
from pulse.declutter.pads import PADS
from pulse.declutter.rewrite import Rewrite
from pulse.declutter.rows import ROWS
from pulse.declutter.single_entries import SINGLE_ENTRIES
from pulse.errors import PulseError
from pulse.ops.op import Op
from pulse.ops.source import Const, Source
from pulse.patch import Patch
from pulse.support.budget import count_spending
from pulse.typed import TypedGraph, TypedNetwork, TypedNode

N = TypeVar("N", bound=TypedNetwork)

DECLUTTER: tuple[Rewrite, ...] = (
    *CONSTANTS,
    *CONDITIONS,
    *NOOPS,
    *MOVEMENT,
    *BROADCASTS,
    *PADS,
    *CROPS,
    *SINGLE_ENTRIES,
    *ROWS,
    *CODES,
    *AFFINE,
    *CACHES,
    *COMMON,
)
"""Every rewrite, in the order in which they are tried on a node."""


def declutter(model: N, rewrites: Sequence[Rewrite] = DECLUTTER, stop_after: int | None = None) -> N:
    """Return an equivalent model with fewer nodes; the given model is not changed.

    stop_after  make at most this many rewrites, to find a wrong one
    """
    return declutter_and_count(model, rewrites, stop_after)[0]


def declutter_and_count(
    model: N, rewrites: Sequence[Rewrite] = DECLUTTER, stop_after: int | None = None
) -> tuple[N, Counter[str]]:
    """Return the decluttered model, and how often each rewrite was applied."""
    applied: Counter[str] = Counter()
    simplified = model.copy()
    # constants may hold anything, so their arithmetic warns of nothing
    with count_spending(model.spending) as spending, np.errstate(all="ignore"):
        simplified.spending = spending
        _declutter_bodies(simplified.graph, rewrites, applied, stop_after)
        while _sweep(simplified.graph, rewrites, applied, stop_after):
            simplified = simplified.copy()
    return simplified, applied


def _declutter_bodies(
    graph: TypedGraph, rewrites: Sequence[Rewrite], applied: Counter[str], stop_after: int | None
) -> None:
    """Declutter the bodies of scans and loops; the graph around them does not change."""

    def declutter_body(body: TypedNetwork) -> TypedNetwork:
        rewrites_left = None if stop_after is None else stop_after - applied.total()
        simplified, inner = declutter_and_count(body, rewrites, rewrites_left)
        applied.update(inner)
        return simplified if inner else body

    for node in graph.nodes:
        before = applied.total()
        op = node.op.with_bodies(declutter_body)
        if applied.total() > before:
            node.op = op


def _sweep(
    graph: TypedGraph, rewrites: Sequence[Rewrite], applied: Counter[str], stop_after: int | None
) -> bool:
    """Rewrite each node once at most; return whether any was rewritten."""
    before, fitting = applied.total(), dict[type[Op], list[Rewrite]]()
    for node_id in graph.order():
        if stop_after is not None and applied.total() >= stop_after:
            break
        node = graph.nodes[node_id]
        op_class = type(node.op)
        if op_class not in fitting:
            fitting[op_class] = [rewrite for rewrite in rewrites if issubclass(op_class, rewrite.ops)]
        match = _match(graph, node, fitting[op_class]) if node.outputs else None
        if match is not None:
            rewrite, patch = match
            _recheck(graph, patch.apply(), rewrite)
            applied[rewrite.name] += 1
    rewritten = applied.total() > before
    if rewritten:
        graph.check()
    return rewritten


def _match(graph: TypedGraph, node: TypedNode, rewrites: Sequence[Rewrite]) -> tuple[Rewrite, Patch] | None:
    if isinstance(node.op, Source):
        return None
    for rewrite in rewrites:
        patch = rewrite.patch(graph, node, node.op)
        if patch is not None:
            return rewrite, patch
    return None


def _recheck(graph: TypedGraph, new_nodes: Sequence[int], rewrite: Rewrite) -> None:
    """Derive the facts of new nodes and their readers again. Raises PulseError: one differs."""
    readers = {
        inlet.node for new in new_nodes for outlet in graph.nodes[new].outputs for inlet in outlet.successors
    }
    for node_id in sorted(readers.union(new_nodes)):
        node = graph.nodes[node_id]
        if isinstance(node.op, Source | Const):
            continue
        for fact, outlet in zip(node.op.facts(graph.input_facts(node)), node.outputs, strict=True):
            if not fact.agrees(outlet.fact):
                raise PulseError(
                    f"after {rewrite.name}, {node.name} ({node.op.name}) is {fact}, not {outlet.fact}"
                )
