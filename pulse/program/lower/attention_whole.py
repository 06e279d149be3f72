"""Attention of every row to all rows at hand: a product, a softmax and a product become one instruction."""

import math
from collections.abc import Sequence

import numpy as np

from pulse.graph import OutletId
from pulse.ops.matmul import MatMul, packed_operand
from pulse.ops.norm import Softmax
from pulse.ops.shape import Transpose
from pulse.program.kernels.attention_whole import WholeAttentionRow, scratch_size
from pulse.program.lower.attention import batch_offsets
from pulse.program.lower.elementwise import scale_of
from pulse.program.lowering import Lowering, PulsedNode
from pulse.program.table.memory import Value
from pulse.support.record import record

MIN_QUERIES = 8
"""The fewest queries, and keys, for which sixteen queries side by side save time."""


@record
class AttentionNodes:
    """``softmax(scale * q @ k) @ v``, where each wire between has one reader.

    scores   the product of queries and keys
    scaled   the wire that the softmax reads
    scale    what the product is multiplied by
    product  the product with the values
    """

    scores: PulsedNode
    scaled: OutletId
    scale: float
    product: PulsedNode


def attention_of(cx: Lowering, scores: PulsedNode) -> AttentionNodes | None:
    """Return the attention that begins with a product of two tensors; None if there is none."""
    scaled, scale = OutletId(scores.id), 1.0
    reader = _only_reader(cx, scaled)
    factor = None if reader is None else scale_of(cx, reader)
    if reader is not None and factor is not None:
        scaled, scale = OutletId(reader.id), factor[1]
        reader = _only_reader(cx, scaled)
    if reader is None or not isinstance(reader.op, Softmax):
        return None
    sizes, rank = cx.fact(scaled).sizes, cx.fact(scaled).rank
    product = _only_reader(cx, OutletId(reader.id))
    if product is None or not isinstance(product.op, MatMul) or product.inputs[0] != OutletId(reader.id):
        return None
    facts = [cx.fact(wire) for wire in (*scores.inputs, *product.inputs)]
    is_plain = reader.op.axis == rank - 1 and not reader.op.log
    return (
        AttentionNodes(scores, scaled, scale, product)
        if is_plain
        and min(fact.rank for fact in facts) >= 2
        and all(fact.dtype == np.float32 for fact in facts)
        and packed_operand(facts[2:]) is None
        and product.inputs[1] != product.inputs[0]
        and min(sizes[-2:]) >= MIN_QUERIES
        and sizes[:-2] == cx.fact(OutletId(product.id)).sizes[:-2]
        else None
    )


def _only_reader(cx: Lowering, outlet: OutletId) -> PulsedNode | None:
    readers = cx.graph.outlet(outlet).successors
    if len(readers) != 1 or cx.is_read_later(outlet):
        return None
    return cx.graph.nodes[next(iter(readers)).node]


def emit_attention(cx: Lowering, q: Value, k: Value, v: Value, outlet: OutletId, scale: float) -> Value:
    """Emit the instruction. q [B..., M, K], k [B..., K, N], v [B..., N, D]: B... broadcast; the result is outlet."""
    q, v = cx.innermost(q, len(q.shape) - 2), cx.innermost(v, len(v.shape) - 1)
    y = cx.new(outlet, _order(cx, outlet))
    batch = y.shape[:-2]
    batch_q, batch_k, batch_v, batch_y = (cx.table(batch_offsets(x, batch)) for x in (q, k, v, y))
    count, (queries, depth), keys = math.prod(batch), q.shape[-2:], k.shape[-1]
    size = scratch_size(count, queries, keys)
    cx.emit(
        WholeAttentionRow(
            q=q,
            k=k,
            v=v,
            y=y,
            scratch=cx.temporary((size,), y.dtype),
            B=count,
            batch_q=batch_q,
            batch_k=batch_k,
            batch_v=batch_v,
            batch_y=batch_y,
            M=queries,
            N=keys,
            K=depth,
            D=v.shape[-1],
            qk=q.strides[-1],
            kn=k.strides[-1],
            kk=k.strides[-2],
            vn=v.strides[-2],
            ym=y.strides[-2],
            scale=scale,
        )
    )
    cx.set_value(outlet, y)
    return y


def _order(cx: Lowering, outlet: OutletId) -> Sequence[int]:
    """Return the axis order of the result: that of the transpose that reads it, if rows stay contiguous."""
    reader = _only_reader(cx, outlet)
    last = cx.fact(outlet).rank - 1
    first = cx.stream_first(outlet)
    if reader is not None and isinstance(reader.op, Transpose) and reader.op.perm[last] == last:
        first = [first[0], *(axis for axis in reader.op.perm if axis != first[0])]
    return [*(axis for axis in first if axis != last), last]
