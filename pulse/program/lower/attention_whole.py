"""Attention of every row to all rows: a product, a softmax and a product become one instruction."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pulse.graph import OutletId
from pulse.ops.matmul import MatMul, packed_operand
from pulse.ops.norm import Softmax
from pulse.ops.shape import Transpose
from pulse.program.kernels.attention_whole import WholeAttentionRow, scratch_size
from pulse.program.lower.elementwise import find_scale
from pulse.program.lower.matmul import take_operand_scale
from pulse.program.lower.matmul_windows import batch_offsets
from pulse.program.lowering import LowerGroup, Lowering, finds_groups
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode

MIN_QUERIES = 8
"""Minimum number of queries and keys; with fewer, sixteen queries side by side do not save time."""


@finds_groups
def find_attentions(
    lowering: Lowering, order: Sequence[int]
) -> tuple[list[int], Mapping[tuple[int, ...], LowerGroup]]:
    """Return the order unchanged, and the groups: the product with the values, then the nodes before it."""
    groups: dict[tuple[int, ...], LowerGroup] = {}
    grouped = set[int]()
    for node_id in order:
        nodes = _attention_before(lowering, lowering.graph.nodes[node_id])
        members = tuple(node.id for node in nodes)
        if members and grouped.isdisjoint(members):
            grouped.update(members)
            groups[members] = lower_attention
    return list(order), groups


def _attention_before(lowering: Lowering, product: PulsedNode) -> list[PulsedNode]:
    """Return a product, a softmax, perhaps a scale, and a product, each the only reader of the next; else nothing."""
    if not isinstance(product.op, MatMul):
        return []
    softmax = lowering.graph.node(product.inputs[0])
    if not isinstance(softmax.op, Softmax) or softmax.op.log:
        return []
    nodes = [product, softmax, lowering.graph.node(softmax.inputs[0])]
    factor = find_scale(lowering, nodes[-1])
    if factor is not None:
        nodes.append(lowering.graph.node(nodes[-1].inputs[factor[0]]))
    sizes, scores = lowering.fact(softmax.inputs[0]).sizes, nodes[-1]
    facts = [lowering.fact(wire) for wire in (*scores.inputs, *product.inputs)]
    return (
        nodes
        if isinstance(scores.op, MatMul)
        and all(lowering.only_reader(OutletId(node.id)) is not None for node in nodes[1:])
        and softmax.op.axis == len(sizes) - 1
        and min(fact.rank for fact in facts) >= 2
        and all(fact.dtype == np.float32 for fact in facts)
        and packed_operand(facts[:2]) is None
        and packed_operand(facts[2:]) is None
        and min(sizes[-2:]) >= MIN_QUERIES
        and sizes[:-2] == lowering.fact(OutletId(product.id)).sizes[:-2]
        else []
    )


def lower_attention(lowering: Lowering, nodes: Sequence[PulsedNode]) -> list[list[TensorView]]:
    """Emit one instruction for ``softmax(scale * q @ k) @ v``; only the last product has a value."""
    product, _, *scaling, scores = nodes
    factors = [find_scale(lowering, node) for node in scaling]
    scale = math.prod(factor[1] for factor in factors if factor is not None)
    (left, scale_q), (right, scale_k) = (take_operand_scale(lowering, operand) for operand in scores.inputs)
    q, k, v = (
        lowering.require_f32(lowering.value(operand), "attention")
        for operand in (left, right, product.inputs[1])
    )
    y = _emit_attention(lowering, q, k, v, OutletId(product.id), scale * scale_q * scale_k)
    return [[y], *([] for _ in nodes[1:])]


def _emit_attention(
    lowering: Lowering, q: TensorView, k: TensorView, v: TensorView, outlet: OutletId, scale: float
) -> TensorView:
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
    return y


def _axis_order(lowering: Lowering, outlet: OutletId) -> Sequence[int]:
    """Return the axis order of the result: as the transpose that reads it needs it, if rows stay contiguous."""
    reader = lowering.only_reader(outlet)
    last = lowering.fact(outlet).rank - 1
    first = lowering.stream_first(outlet)
    if reader is not None and isinstance(reader.op, Transpose) and reader.op.perm[last] == last:
        first = [first[0], *(axis for axis in reader.op.perm if axis != first[0])]
    return [*(axis for axis in first if axis != last), last]
