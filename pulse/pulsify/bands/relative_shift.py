"""Scores by relative position, ``s[i, j] = q[i] . r[j - i]``.

They are shifted by a padding, two reshapes and a slice, or taken by indices.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.facts import I64, Array, Shape
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.gather import Gather
from pulse.ops.gather_elements import GatherElements
from pulse.ops.matmul import MatMul
from pulse.ops.op import Op
from pulse.ops.pad import Pad
from pulse.ops.shape import AddAxis, Expand, Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.ops.source import Const
from pulse.ops.time_position import Range
from pulse.patch import Patch
from pulse.pulsify.bands.static_wires import StaticWires, value_at
from pulse.pulsify.lengths import min_value_for
from pulse.support.record import record
from pulse.typed import TypedGraph, TypedNode

MOVES = (Pad, Slice, Concat, Transpose, GatherElements)
"""Ops that make the shift or keep the order."""
TRACED_ROW_COUNTS = (1, 2, 3, 5, 8, 13)
"""The numbers of rows at which the source of each score is traced to recognise a shift."""
SHORT_ROW_COUNTS = (2, 5)
"""The numbers of rows of the short streams whose positions are compared with those of long ones."""


@record
class RelativeScores:
    """A product of queries with positions, and the scores made from it.

    The positions are by distance, [A..., d, 2 * rows - 1] or the first rows of these, or vectors for pairs,
    [rows, d, rows].

    product  node of the product
    shifted  wire of the shifted scores
    pairs    whether they are vectors for pairs
    causal   whether there are none for frames ahead
    order    which of the product's matrices each matrix of the shifted scores is
    factor   the factor of the scores before they are added to the product of queries and keys
    """

    product: int
    shifted: OutletId
    pairs: bool = False
    causal: bool = False
    order: tuple[int, ...] = ()
    factor: float = 1.0


def find_shift(
    graph: TypedGraph, outlet: OutletId, symbol: Symbol, rows: TDim, static: StaticWires
) -> RelativeScores | None:
    """Find the product that makes the scores, if row i has its column ``rows - 1 - i + j`` at j.

    A product with ``rows`` columns, as in Transformer-XL, has these for j up to i alone.
    """
    node, path = find_moved(graph, outlet, MOVES)
    if not path or not isinstance(node.op, MatMul):
        return None
    nodes = [graph.nodes[node_id] for node_id in path]
    if not all(static(node.inputs[1]) for node in nodes if isinstance(node.op, GatherElements)):
        return None
    fact = graph.fact(OutletId(node.id))
    causal, orders = fact.shape[-1] == rows, set[tuple[int, ...]]()
    for count in TRACED_ROW_COUNTS:
        length = length_with_rows(rows, symbol, count)
        if length is None:
            return None
        env = {symbol: length}
        shape = [dim.eval(env) for dim in fact.shape]
        if shape[-2:] != [count, count if causal else 2 * count - 1]:
            return None
        value: Array = np.arange(1, prod(shape) + 1, dtype=np.float64).reshape(shape)
        matrices = value.reshape(-1, *shape[-2:])
        for node_id in reversed(path):
            value = _move(graph, node_id, value, env)
        if value.shape[-2:] != (count, count):
            return None
        value = value.reshape(-1, count, count)
        order = ((value[:, -1, 0] - 1) // prod(shape[-2:])).astype(int)
        i, j = np.tril_indices(count) if causal else np.indices((count, count))
        if not np.array_equal(value[:, i, j], matrices[order][:, i, count - 1 - i + j]):
            return None
        orders.add(tuple(order.tolist()))
    return RelativeScores(node.id, outlet, causal=causal, order=orders.pop()) if len(orders) == 1 else None


def _move(graph: TypedGraph, node_id: int, value: Array, env: dict[Symbol, int]) -> Array:
    """Return the result of an op for a value of the wire that it moves; what it joins to it are zeros."""
    node = graph.nodes[node_id]
    operands = [value]
    if isinstance(node.op, Concat):
        moved = moved_input(graph, node)
        operands = [
            value if source == moved else np.zeros([dim.eval(env) for dim in graph.fact(source).shape])
            for source in node.inputs
        ]
    elif isinstance(node.op, GatherElements):
        operands.append(value_at(graph, node.inputs[1], env, {}))
    (result,) = node.op.eval(operands, env)
    return result


def find_moved(
    graph: TypedGraph, outlet: OutletId, moves: tuple[type[Op], ...]
) -> tuple[TypedNode, list[int]]:
    """Return the node whose first output is moved to a wire by ops that keep the order and by ``moves``, and these ops.

    These are given by their ids, the last one first.
    """
    path: list[int] = []
    node = graph.node(outlet)
    while node.op.keeps_order or isinstance(node.op, moves):
        moved = moved_input(graph, node)
        if moved is None:
            break
        path.append(node.id)
        node = graph.node(moved)
    return node, path


def moved_input(graph: TypedGraph, node: TypedNode) -> OutletId | None:
    """Return the wire that an op moves; the only one that a Concat joins to constants, None if there are several."""
    if not isinstance(node.op, Concat):
        return node.inputs[0]
    others = [source for source in node.inputs if not _is_filled(graph, source)]
    return others[0] if len(others) == 1 else None


def _is_filled(graph: TypedGraph, outlet: OutletId) -> bool:
    """Return whether a wire is one number repeated."""
    node = graph.node(outlet)
    while node.op.keeps_values:
        node = graph.node(node.inputs[0])
    return isinstance(node.op, Const) and node.op.value.size == 1


def length_with_rows(rows: TDim, symbol: Symbol, count: int) -> int | None:
    """Return the smallest stream length with ``count`` rows; None if there is none."""
    if rows.slope(symbol) <= 0:
        return None
    length = min_value_for(rows, count, symbol)
    return length if rows.eval({symbol: length}) == count else None


def positions_near(values: Mapping[int, Array], back: int, ahead: int) -> Array | None:
    """Return the positions [A..., d, back + 1 + ahead] for all distances in a band; None if the length changes them.

    values  rows -> all positions of a stream of that length, [A..., d, 2 * rows - 1]
    """
    longest = max(values, default=0)
    if len(values) < 2 or longest <= max(back, ahead):
        return None
    near = values[longest][..., longest - 1 - back : longest + ahead]
    slack = 1e-5 * float(np.abs(near).max(initial=0))
    for rows, value in values.items():
        before, after = min(back, rows - 1), min(ahead, rows - 1)
        window = value[..., rows - 1 - before : rows + after]
        if not np.allclose(window, near[..., back - before : back + 1 + after], 1e-5, slack):
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
    """Return queries and keys [A..., T, d] with extra channels, so that their products include the relative scores.

    Channel c of key j is 1 if c is j modulo the width of the band, else 0; channel c of query i is its score with the
    frame of the band whose index is c modulo that width.
    """
    width = near.shape[-1]
    queries = graph.nodes[relative_scores.product].inputs[0]
    wire = patch.wire
    table = patch.add_constant(f"{name}.positions", near)
    scores = wire(f"{name}.relative", MatMul(), [patch.tap(queries), table])[0]
    if relative_scores.pairs:
        scores = _transpose_pairs(patch, scores, patch.graph.fact(q).shape[:-2], name)
    else:
        batch = graph.fact(relative_scores.shifted).shape[:-2]
        scores = _order_matrices(patch, scores, relative_scores.order, batch, name)
    fact = patch.graph.fact(scores)
    rows = fact.shape[-2]
    steps = wire(f"{name}.steps", Range(0, 1, rows, I64), [])[0]
    column = wire(f"{name}.column", AddAxis(1), [steps])[0]
    places = patch.add_constant(f"{name}.places", np.arange(width, dtype=np.int64))
    size = patch.add_constant(f"{name}.width", np.array(width, np.int64))
    last_distances = patch.add_constant(f"{name}.last_distances", np.arange(width, dtype=np.int64) + back)
    distances = wire(f"{name}.distances", Elementwise("sub"), [last_distances, column])[0]
    place = wire(f"{name}.place", Elementwise("mod"), [distances, size])[0]
    index = wire(f"{name}.index", Expand(fact.shape), [place])[0]
    extra_q = wire(f"{name}.q_relative", GatherElements(fact.rank - 1), [scores, index])[0]
    own_place = wire(f"{name}.own_place", Elementwise("mod"), [column, size])[0]
    same = wire(f"{name}.same", Elementwise("equal"), [own_place, places])[0]
    extra_k = wire(f"{name}.k_relative", Cast(fact.dtype), [same])[0]
    operands: list[OutletId] = []
    for side, extra, letter in ((q, extra_q, "q"), (k, extra_k, "k")):
        shape = patch.graph.fact(side).shape
        wide = (*shape[:-1], TDim.of(width))
        if patch.graph.fact(extra).shape != wide:
            extra = wire(f"{name}.{letter}_wide", Expand(wide), [extra])[0]
        operands.append(wire(f"{name}.{letter}_joined", Concat(len(shape) - 1), [side, extra])[0])
    return operands[0], operands[1]


def _order_matrices(
    patch: Patch, scores: OutletId, order: tuple[int, ...], batch: Shape, name: str
) -> OutletId:
    """Order the matrices of scores [A..., rows, n] differently, with shape [batch..., rows, n]."""
    shape = patch.graph.fact(scores).shape
    if order != tuple(range(len(order))):
        flat = patch.wire(f"{name}.relative_flat", Reshape((TDim.of(len(order)), *shape[-2:])), [scores])[0]
        indices = patch.add_constant(f"{name}.order", np.array(order, np.int64))
        scores = patch.wire(f"{name}.relative_ordered", Gather(0), [flat, indices])[0]
    elif shape[:-2] == batch:
        return scores
    return patch.wire(f"{name}.relative_apart", Reshape((*batch, *shape[-2:])), [scores])[0]


def _transpose_pairs(patch: Patch, scores: OutletId, batch: Shape, name: str) -> OutletId:
    """Transpose scores [rows, heads, n] to [A..., rows, n]."""
    transposed = patch.wire(f"{name}.relative_transposed", Transpose((1, 0, 2)), [scores])[0]
    shape = patch.graph.fact(transposed).shape
    return patch.wire(f"{name}.relative_heads", Reshape((*batch, *shape[1:])), [transposed])[0]
