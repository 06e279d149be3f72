"""Updates of neighbouring frames, extended to the length of the stream; frames outside are arbitrary."""

import numpy as np

from pulse.declutter.conditions import uniform_value
from pulse.dim import TDim
from pulse.facts import TypedFact, is_symbolic
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.operators.gather_progression import strip_clamp
from pulse.ops.concat import Concat
from pulse.ops.dims import require_at_least
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.pad import Pad
from pulse.ops.shape import Expand, Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.support.record import record
from pulse.typed import known_value

MAX_DEPTH = 16
"""Maximum number of nodes between what is written and the stream that it is computed from."""
ZERO = TDim.of(0)


@record
class WrittenPlace:
    """Neighbouring frames of a stream.

    size   frames of the stream
    start  the first frame that is written, from 0 or as the size less a constant
    end    the bound that no written frame reaches
    """

    size: TDim
    start: TDim
    end: TDim


def place_updates(
    node: NodeContext, x: OutletId, updates: OutletId, axis: int, place: WrittenPlace
) -> OutletId | None:
    """Return a wire with the updates at their places along an axis, of size 1 or as long as x; None if unknown.

    x  the stream that is written to
    """
    fact = node.graph.fact(x)
    number = uniform_value(node.graph, updates)
    if number is not None:
        return node.constant(np.full((1,) * fact.rank, number, fact.dtype), "update")
    lifted = _lift(node, updates, axis, place, MAX_DEPTH)
    return _move(node, updates, axis, place) if lifted is None else lifted


def _lift(node: NodeContext, outlet: OutletId, axis: int, place: WrittenPlace, depth: int) -> OutletId | None:
    """Return a function of slices of streams as the same function of the streams; None for others."""
    graph = node.graph
    fact, producer = graph.fact(outlet), graph.node(outlet)
    if fact.shape[axis] == 1 and known_value(graph, outlet) is not None:
        return outlet
    if known_value(graph, outlet) is not None:
        return _place_table(node, outlet, axis, place)
    match producer.op:
        case _ if not depth:
            return None
        case Slice(op_axis, start, _, 1) if op_axis == axis:
            return _shift(node, producer.inputs[0], axis, strip_clamp(start) - place.start, place.size)
        case Expand() | Reshape() if _keeps_shape(fact, graph.fact(producer.inputs[0])):
            return _lift(node, producer.inputs[0], axis, place, depth - 1)
        case Expand():
            inner = graph.fact(producer.inputs[0])
            inner_axis = axis - (fact.rank - inner.rank)
            return producer.inputs[0] if inner_axis < 0 or inner.shape[inner_axis] == 1 else None
        case Transpose(perm):
            inner = _lift(node, producer.inputs[0], perm[axis], place, depth - 1)
            return inner if inner is None else node.wire(producer.op, [inner], f"whole{producer.id}")
        case Elementwise() | Cast():
            operands: list[OutletId] = []
            for operand in producer.inputs:
                operand_axis = axis - (fact.rank - graph.fact(operand).rank)
                whole = operand_axis < 0 or graph.fact(operand).shape[operand_axis] == 1
                lifted = operand if whole else _lift(node, operand, operand_axis, place, depth - 1)
                if lifted is None:
                    return None
                operands.append(lifted)
            return node.wire(producer.op, operands, f"whole{producer.id}")
        case _:
            return None


def _keeps_shape(fact: TypedFact, before: TypedFact) -> bool:
    return fact.rank == before.rank and all(
        dim.prove_eq(dim_before).yes for dim, dim_before in zip(fact.shape, before.shape)
    )


def _shift(node: NodeContext, x: OutletId, axis: int, ahead: TDim, size: TDim) -> OutletId | None:
    """Return the stream whose frame t is frame t + ahead of x, which has as many frames."""
    fact = node.graph.fact(x)
    if fact.shape[axis] != size or not ahead.is_const:
        return None
    frames = int(ahead)
    if not frames:
        return x
    pads = [(ZERO, ZERO)] * fact.rank
    pads[axis] = TDim.of(max(0, -frames)), TDim.of(max(0, frames))
    padded = node.wire(Pad(tuple(pads)), [x], f"padded{x.node}_{frames}")
    first = TDim.of(max(0, frames))
    return node.wire(Slice(axis, first, size + first), [padded], f"moved{x.node}_{frames}")


def _place_table(node: NodeContext, table: OutletId, axis: int, place: WrittenPlace) -> OutletId | None:
    """Return a stream of zeros with a constant of several frames at its place."""
    fact, value = node.graph.fact(table), known_value(node.graph, table)
    count = fact.shape[axis]
    from_end = place.size - place.start
    if value is None or is_symbolic(value) or not (place.start.is_const or from_end == count):
        return None
    require_at_least(
        place.size, place.start + count if place.start.is_const else from_end, "the written frames"
    )
    ends = (
        (place.start, place.size - place.start - count)
        if place.start.is_const
        else (place.size - count, ZERO)
    )
    shape = [1 if other == axis else int(dim) for other, dim in enumerate(fact.shape)]
    zero = node.constant(np.zeros(shape, fact.dtype), f"zero{table.node}")
    sides = [
        node.wire(
            Expand((*fact.shape[:axis], frames, *fact.shape[axis + 1 :])), [zero], f"side{table.node}_{slot}"
        )
        for slot, frames in enumerate(ends)
    ]
    placed = node.wire(Concat(axis), [sides[0], table, sides[1]], f"placed{table.node}")
    return placed if node.graph.fact(placed).shape[axis] == place.size else None


def _move(node: NodeContext, updates: OutletId, axis: int, place: WrittenPlace) -> OutletId | None:
    """Return updates that are as long as the stream, except for a constant number of frames, at their places."""
    fact, after = node.graph.fact(updates), place.size - place.end
    if not (place.start.is_const and after.is_const and int(place.start) >= 0 and int(after) >= 0):
        return None
    pads = [(ZERO, ZERO)] * fact.rank
    pads[axis] = place.start, place.start + after
    padded = node.wire(Pad(tuple(pads)), [updates], "padded")
    placed = node.wire(Slice(axis, ZERO, place.size), [padded], "moved")
    return placed if node.graph.fact(placed).shape[axis] == place.size else None
