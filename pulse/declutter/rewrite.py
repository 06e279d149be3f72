"""``Rewrite``, and the functions of graphs that rewrites share."""

from collections.abc import Callable
from typing import Any

from pulse.graph import OutletId
from pulse.ops.op import Op
from pulse.patch import Patch, bypass_wire
from pulse.support.record import record
from pulse.typed import TypedGraph, TypedNode


@record
class Rewrite:
    """The replacement of nodes by fewer or simpler ones.

    name    its name, for reports
    reason  why the meaning is kept
    patch   function (graph, node, op of the node) -> the patch, None if the rewrite does not fit. Every patch must
            leave less to do: fewer nodes, or a shorter way to a wire
    ops     the classes of ops that it may fit
    """

    name: str
    reason: str
    patch: Callable[[TypedGraph, TypedNode, Any], Patch | None]
    ops: tuple[type[Op], ...] = (Op,)


def first_output(node: TypedNode) -> OutletId:
    """Return the first output of a node."""
    return OutletId(node.id)


def has_one_reader(graph: TypedGraph, outlet: OutletId) -> bool:
    """Return whether a wire has one reader and is not an output of the model."""
    return len(graph.outlet(outlet).successors) == 1 and not graph.is_output(outlet)


def bypass(graph: TypedGraph, node: TypedNode, outlet: OutletId) -> Patch | None:
    """Return the patch that connects the readers of a node to ``outlet``, if its type and shape are the same."""
    old = first_output(node)
    return bypass_wire(graph, old, outlet) if graph.fact(old).agrees(graph.fact(outlet)) else None
