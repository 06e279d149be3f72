"""Scores with a vector for each pair of frames, a function of their distance: ``s[i, j] = q[i] . r[j - i]``."""

from math import prod

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.matmul import MatMul
from pulse.ops.shape import Transpose
from pulse.pulsify.bands.mask import MASKED, MAX_ELEMENTS, Mask
from pulse.pulsify.bands.mask_proof import MaskProof
from pulse.pulsify.bands.pattern import PatternExtent
from pulse.pulsify.bands.relative_shift import TRACED_ROW_COUNTS, RelativeScores, find_moved, length_with_rows
from pulse.typed import TypedGraph


def find_pairs(graph: TypedGraph, outlet: OutletId, symbol: Symbol, rows: TDim) -> RelativeScores | None:
    """Find the product [rows, heads, d] @ [rows, d, rows] that makes scores [A..., rows, rows]."""
    node, path = find_moved(graph, outlet, (Transpose,))
    fact = graph.fact(OutletId(node.id))
    if not isinstance(node.op, MatMul) or fact.symbolic_axes(symbol) != [0, 2] or fact.rank != 3:
        return None
    if not graph.fact(node.inputs[0]).shape[-1].is_const:
        return None
    for count in TRACED_ROW_COUNTS:
        length = length_with_rows(rows, symbol, count)
        if length is None:
            return None
        shape = [dim.eval({symbol: length}) for dim in fact.shape]
        numbers = np.arange(prod(shape), dtype=np.float64).reshape(shape)
        value: Array = numbers
        for node_id in reversed(path):
            (value,) = graph.nodes[node_id].op.eval([value], {symbol: length})
        transposed = numbers.transpose(1, 0, 2)
        if value.shape[-2:] != (count, count) or not np.array_equal(
            value.reshape(-1, count, count), transposed
        ):
            return None
    return RelativeScores(node.id, outlet, pairs=True)


def pairs_near(mask: Mask, relative_scores: RelativeScores, back: int, ahead: int) -> Array | str:
    """Return the vectors [d, back + 1 + ahead] for all distances in a band, or why they are unknown."""
    vectors = mask.graph.nodes[relative_scores.product].inputs[1]
    proof = MaskProof(mask.graph, mask.symbol, mask.rows, PatternExtent(1, 1, MASKED))
    if not proof.pattern(vectors).is_steady:
        return "its relative positions are not proved to depend only on the distance of frames"
    shape = mask.graph.fact(vectors).shape
    width, reach = int(shape[1]), max(back, ahead) + 1
    longest = mask.longest()
    count = reach if longest is None else min(reach, longest)
    if count * count * width > MAX_ELEMENTS:
        return f"relative positions within {reach} frames are more than {MAX_ELEMENTS} numbers"
    ((rows, value),) = mask.values(vectors, [count])
    near = np.zeros((width, back + 1 + ahead), value.dtype)
    for index in range(max(0, back + 1 - rows), min(back + rows, back + 1 + ahead)):
        distance = index - back
        near[:, index] = value[max(0, -distance), :, max(0, distance)]
    return near
