"""Scores by relative position, shifted by a padding, two reshapes and a slice: ``s[i, j] = q[i] . r[j - i]``."""

from collections.abc import Mapping

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.facts import Array, Shape
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.gather_elements import GatherElements
from pulse.ops.matmul import MatMul
from pulse.ops.op import Op
from pulse.ops.pad import Pad
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.ops.time_position import Range
from pulse.patch import Patch
from pulse.support.record import record
from pulse.typed import TypedGraph, TypedNode

MOVES = (Pad, Reshape, Slice, AddAxis, RemoveAxis)
TRIED = (1, 2, 3, 5, 8, 13)
"""The numbers of rows at which the source of each score is traced to recognise a shift."""
SHORT = (2, 5)
"""The numbers of rows of the short streams whose positions are compared with those of long ones."""


@record
class RelativeScores:
    """A product of queries with positions, and the scores made from it.

    The positions are [A..., d, 2 * rows - 1], by distance, or vectors for pairs [rows, d, rows].

    pairs   whether they are vectors for pairs
    factor  the factor of the scores before they are added to the product of queries and keys
    """

    product: int
    shifted: OutletId
    pairs: bool = False
    factor: float = 1.0


def find_shift(graph: TypedGraph, outlet: OutletId, symbol: Symbol, rows: TDim) -> RelativeScores | None:
    """Find the product that makes the scores, if row i has its column ``rows - 1 - i + j`` at j."""
    node, path = find_moved(graph, outlet, MOVES)
    if not path or not isinstance(node.op, MatMul):
        return None
    fact = graph.fact(OutletId(node.id))
    for count in TRIED:
        length = length_with_rows(rows, symbol, count)
        if length is None:
            return None
        shape = [dim.eval({symbol: length}) for dim in fact.shape]
        if shape[-2:] != [count, 2 * count - 1]:
            return None
        places = np.arange(1, shape[-2] * shape[-1] + 1, dtype=np.float64).reshape(shape[-2:])
        value: Array = np.broadcast_to(places, shape)
        for number in reversed(path):
            (value,) = graph.nodes[number].op.eval([value], {symbol: length})
        i, j = np.indices((count, count))
        if value.shape[-2:] != (count, count) or not (value == places[i, count - 1 - i + j]).all():
            return None
    return RelativeScores(node.id, outlet)


def find_moved(
    graph: TypedGraph, outlet: OutletId, moves: tuple[type[Op], ...]
) -> tuple[TypedNode, list[int]]:
    """The node whose first output these ops move to a wire, and the ids of the ops, last one first."""
    path: list[int] = []
    node = graph.node(outlet)
    while isinstance(node.op, moves):
        path.append(node.id)
        node = graph.node(node.inputs[0])
    return node, path


def length_with_rows(rows: TDim, symbol: Symbol, count: int) -> int | None:
    """A stream length that gives ``count`` rows; None if there is none."""
    return next((each for each in range(64 * count) if rows.eval({symbol: each}) == count), None)


def positions_near(values: Mapping[int, Array], back: int, ahead: int) -> Array | None:
    """The positions [A..., d, back + 1 + ahead] for all distances in a band; None if they change with the length.

    values  rows -> all positions of a stream of that length, [A..., d, 2 * rows - 1]
    """
    longest = max(values, default=0)
    if len(values) < 2 or longest <= max(back, ahead):
        return None
    near = values[longest][..., longest - 1 - back : longest + ahead]
    slack = 1e-5 * float(np.abs(near).max(initial=0))
    for rows, value in values.items():
        before, after = min(back, rows - 1), min(ahead, rows - 1)
        own = value[..., rows - 1 - before : rows + after]
        if not np.allclose(own, near[..., back - before : back + 1 + after], 1e-5, slack):
            return None
    return near


def join_positions(
    graph: TypedGraph,
    patch: Patch,
    relative_scores: RelativeScores,
    near: Array,
    back: int,
    q: OutletId,
    k: OutletId,
    name: str,
) -> tuple[OutletId, OutletId]:
    """Queries and keys [A..., T, d] with extra channels, so that their products include the relative scores.

    Channel c of key j is 1 if c is j modulo the width of the band, else 0; channel c of query i is its score with the
    frame of the band whose index is c modulo that width.
    """
    width = near.shape[-1]
    own = graph.nodes[relative_scores.product].inputs[0]
    wire = patch.wire
    table = patch.constant(f"{name}.positions", near)
    scores = wire(f"{name}.relative", MatMul(), [patch.tap(own), table])[0]
    if relative_scores.pairs:
        scores = _turn_pairs(patch, scores, patch.graph.fact(q).shape[:-2], name)
    fact = patch.graph.fact(scores)
    rows = fact.shape[-2]
    steps = wire(f"{name}.steps", Range(0, 1, rows, np.dtype(np.int64)), [])[0]
    column = wire(f"{name}.column", AddAxis(1), [steps])[0]
    places = patch.constant(f"{name}.places", np.arange(width, dtype=np.int64))
    size = patch.constant(f"{name}.width", np.array(width, np.int64))
    last_distances = patch.constant(f"{name}.moved", np.arange(width, dtype=np.int64) + back)
    distances = wire(f"{name}.turned", Elementwise("sub"), [last_distances, column])[0]
    index = wire(f"{name}.index", Elementwise("mod"), [distances, size])[0]
    index = wire(f"{name}.indices", Expand(fact.shape), [index])[0]
    more_q = wire(f"{name}.q_relative", GatherElements(fact.rank - 1), [scores, index])[0]
    own_place = wire(f"{name}.own", Elementwise("mod"), [column, size])[0]
    same = wire(f"{name}.same", Elementwise("equal"), [own_place, places])[0]
    more_k = wire(f"{name}.k_relative", Cast(fact.dtype), [same])[0]
    operands: list[OutletId] = []
    for side, more, letter in ((q, more_q, "q"), (k, more_k, "k")):
        shape = patch.graph.fact(side).shape
        lead = (*shape[:-1], TDim.of(width))
        if patch.graph.fact(more).shape != lead:
            more = wire(f"{name}.{letter}_wide", Expand(lead), [more])[0]
        operands.append(wire(f"{name}.{letter}_joined", Concat(len(shape) - 1), [side, more])[0])
    return operands[0], operands[1]


def _turn_pairs(patch: Patch, scores: OutletId, lead: Shape, name: str) -> OutletId:
    """Transpose scores [rows, heads, n] to [A..., rows, n]."""
    transposed = patch.wire(f"{name}.relative_turned", Transpose((1, 0, 2)), [scores])[0]
    shape = patch.graph.fact(transposed).shape
    return patch.wire(f"{name}.relative_heads", Reshape((*lead, *shape[1:])), [transposed])[0]
