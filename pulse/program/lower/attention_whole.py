"""Attention of every row to all rows: a product, a softmax and a product become one instruction."""

import math
from collections.abc import Sequence

import numpy as np

from pulse.graph import OutletId
from pulse.ops.matmul import MatMul, packed_operand
from pulse.ops.norm import Softmax
from pulse.ops.shape import Transpose
from pulse.program.kernels.attention_whole import WholeAttentionRow, scratch_size
from pulse.program.lower.elementwise import find_scale
from pulse.program.lower.matmul_windows import batch_offsets
from pulse.program.lowering import Lowering, PulsedNode
from pulse.program.table.memory import Value
from pulse.support.record import record

MIN_QUERIES = 8
"""Minimum number of queries and keys; with fewer, sixteen queries side by side do not save time."""


@record
class AttentionNodes:
    """``softmax(scale * q @ k) @ v``, where each wire between has one reader.

    scores   the product of queries and keys
    scaled   the wire that the softmax reads
    scale    the number that multiplies the product
    product  the product with the values
    """

    scores: PulsedNode
    scaled: OutletId
    scale: float
    product: PulsedNode


def find_attention(lowering: Lowering, scores: PulsedNode) -> AttentionNodes | None:
    """Return the attention that begins with a product of two tensors; None if there is none."""
    scaled, scale = OutletId(scores.id), 1.0
    reader = lowering.only_reader(scaled)
    factor = None if reader is None else find_scale(lowering, reader)
    if reader is not None and factor is not None:
        scaled, scale = OutletId(reader.id), factor[1]
        reader = lowering.only_reader(scaled)
    if reader is None or not isinstance(reader.op, Softmax):
        return None
    sizes, rank = lowering.fact(scaled).sizes, lowering.fact(scaled).rank
    product = lowering.only_reader(OutletId(reader.id))
    if product is None or not isinstance(product.op, MatMul) or product.inputs[0] != OutletId(reader.id):
        return None
    facts = [lowering.fact(wire) for wire in (*scores.inputs, *product.inputs)]
    is_last_axis = reader.op.axis == rank - 1 and not reader.op.log
    return (
        AttentionNodes(scores, scaled, scale, product)
        if is_last_axis
        and min(fact.rank for fact in facts) >= 2
        and all(fact.dtype == np.float32 for fact in facts)
        and packed_operand(facts[2:]) is None
        and product.inputs[1] != product.inputs[0]
        and min(sizes[-2:]) >= MIN_QUERIES
        and sizes[:-2] == lowering.fact(OutletId(product.id)).sizes[:-2]
        else None
    )


def emit_attention(lowering: Lowering, q: Value, k: Value, v: Value, outlet: OutletId, scale: float) -> Value:
    """Emit the instruction for q [B..., M, K], k [B..., K, N] and v [B..., N, D]; the axes B... broadcast."""
    q, v = lowering.make_innermost(q, len(q.shape) - 2), lowering.make_innermost(v, len(v.shape) - 1)
    y = lowering.allocate_wire(outlet, _axis_order(lowering, outlet))
    batch = y.shape[:-2]
    batch_q, batch_k, batch_v, batch_y = (lowering.add_table(batch_offsets(x, batch)) for x in (q, k, v, y))
    count, (queries, depth), keys = math.prod(batch), q.shape[-2:], k.shape[-1]
    size = scratch_size(count, queries, keys)
    lowering.emit(
        WholeAttentionRow(
            q=q,
            k=k,
            v=v,
            y=y,
            scratch=lowering.allocate_temporary((size,), y.dtype),
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
    lowering.set_value(outlet, y)
    return y


def _axis_order(lowering: Lowering, outlet: OutletId) -> Sequence[int]:
    """Return the axis order of the result: as the transpose that reads it needs it, if rows stay contiguous."""
    reader = lowering.only_reader(outlet)
    last = lowering.fact(outlet).rank - 1
    first = lowering.stream_first(outlet)
    if reader is not None and isinstance(reader.op, Transpose) and reader.op.perm[last] == last:
        first = [first[0], *(axis for axis in reader.op.perm if axis != first[0])]
    return [*(axis for axis in first if axis != last), last]
