"""Matrix products."""

import math
from collections.abc import Sequence

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.jit.language.simd import LANES
from pulse.ops.matmul import MatMul, packed_operand
from pulse.ops.norm import Softmax
from pulse.program.kernels.matmul import MatmulRow
from pulse.program.lower.attention_whole import attention_of, emit_attention
from pulse.program.lower.elementwise import scale_of
from pulse.program.lower.matmul_finishing import find_finishing
from pulse.program.lower.matmul_product import emit_product, grid_offsets, stored_of
from pulse.program.lower.quantize_rows import unrounded_rows
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.table.memory import Value
from pulse.program.weights import Stored

MIN_COPIED_ROWS = 8
"""The fewest rows and columns for which copying a matrix saves more than it costs."""


@lowers(MatMul)
def lower_matmul(cx: Lowering, node: PulsedNode, op: MatMul) -> list[Value]:
    """Pack a constant matrix on either side; otherwise emit a batched product of two tensors."""
    outlet = OutletId(node.id)
    facts = [cx.fact(operand) for operand in node.inputs]
    side = packed_operand(facts)
    if side is None:
        product = _lower_batches(cx, node, outlet)
        return [] if product is None else [product]
    stored = stored_of(cx, node, side, "its matrix")
    source = unrounded_rows(cx, node.inputs[1 - side])
    x = cx.floats(cx.value(source or node.inputs[1 - side]), "a matrix product")
    if side == 1:
        return [_rows_product(cx, outlet, cx.innermost(x, facts[0].rank - 1), stored, source is not None)]
    return [_columns_product(cx, outlet, cx.innermost(x, facts[1].rank - 2), stored, source is not None)]


def _rows_product(cx: Lowering, outlet: OutletId, x: Value, stored: Stored, rounds_rows: bool) -> Value:
    """Compute y[..., n] = sum_k x[..., k] matrix[k, n]."""
    last = len(x.shape) - 1
    return _matrix_product(
        cx=cx,
        outlet=outlet,
        x=x,
        matrix=stored.codes,
        scales=stored.scales_of(),
        columns=last,
        rows=list(range(last)),
        rounds_rows=rounds_rows,
    )


def _columns_product(cx: Lowering, outlet: OutletId, x: Value, stored: Stored, rounds_rows: bool) -> Value:
    """Compute y[..., m, n] = sum_k matrix[m, k] x[..., k, n]; the rows of the product are the columns n."""
    rank = len(x.shape)
    rows = [*range(rank - 2), rank - 1]
    return _matrix_product(
        cx=cx,
        outlet=outlet,
        x=x,
        matrix=stored.codes.T,
        scales=stored.scales_of(),
        columns=rank - 2,
        rows=rows,
        rounds_rows=rounds_rows,
    )


def _matrix_product(
    cx: Lowering,
    outlet: OutletId,
    x: Value,
    matrix: Array,
    scales: Array | None,
    columns: int,
    rows: Sequence[int],
    rounds_rows: bool,
) -> Value:
    """Multiply the axis ``columns`` of x by a matrix, at every position of the axes ``rows``."""
    after = find_finishing(cx, outlet, columns, gates=True)
    order = [axis for axis in x.order if axis != columns] + [columns]
    y = after.place(cx, cx.fact(outlet).sizes, order)
    bias = np.zeros(matrix.shape[1], np.float32) if after.bias is None else after.bias

    def rows_of(value: Value) -> Array:
        return value.offsets(rows)

    finish = after.steps_on(cx, y, rows_of)
    tap = np.zeros(1, np.int64)
    emit_product(
        cx=cx,
        x=x,
        rows_x=rows_of(x),
        taps=tap,
        matrix=matrix,
        bias=bias,
        y=y,
        rows_y=rows_of(y),
        scales=scales,
        finish=finish,
        rounds_rows=rounds_rows,
    )
    after.set_value(cx, y)
    return y


def _lower_batches(cx: Lowering, node: PulsedNode, outlet: OutletId) -> Value | None:
    """Multiply two tensors; the scores of an attention wait for the product with the values."""
    attention = attention_of(cx, node)
    if attention is not None:
        scaled, scale = attention.scaled, attention.scale
        cx.done.add(scaled.node)
        cx.pending[scaled] = lambda: _multiply(cx, node, scaled, scale)
        return None
    softmax = cx.graph.node(node.inputs[0])
    if isinstance(softmax.op, Softmax) and node.inputs[0] in cx.pending:
        return _attend(cx, node, softmax)
    outlet, scale = with_scale(cx, outlet)
    return _multiply(cx, node, outlet, scale)


def _attend(cx: Lowering, node: PulsedNode, softmax: PulsedNode) -> Value:
    """Emit the scores that wait for a product, their softmax and the product as one instruction."""
    (scaled,) = softmax.inputs
    del cx.pending[scaled], cx.pending[OutletId(softmax.id)]
    scores, scale = cx.graph.node(scaled), 1.0
    factor = scale_of(cx, scores)
    if factor is not None:
        scores, scale = cx.graph.node(scores.inputs[factor[0]]), factor[1]
    (left, scale_q), (right, scale_k) = (without_scale(cx, operand) for operand in scores.inputs)
    q, k, v = (cx.floats(cx.value(operand), "attention") for operand in (left, right, node.inputs[1]))
    return emit_attention(cx, q, k, v, OutletId(node.id), scale * scale_q * scale_k)


def _multiply(cx: Lowering, node: PulsedNode, outlet: OutletId, scale: float) -> Value:
    """Emit the batched product of two tensors times a scale, as the wire ``outlet``."""
    (first, scale_a), (second, scale_b) = (without_scale(cx, operand) for operand in node.inputs)
    a, b = (cx.floats(cx.value(operand), "a matrix product") for operand in (first, second))
    a = a.view((1, *a.shape), (0, *a.strides)) if len(a.shape) == 1 else a
    b = b.view((*b.shape, 1), (*b.strides, 0)) if len(b.shape) == 1 else b
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    target = cx.new(outlet, None)
    y = target
    if len(cx.fact(node.inputs[0]).shape) == 1:
        y = y.view((*y.shape[:-1], 1, y.shape[-1]), (*y.strides[:-1], 0, y.strides[-1])) if y.shape else y
        y = y if len(cx.fact(node.inputs[1]).shape) > 1 else target.view((1, 1), (0, 0))
    elif len(cx.fact(node.inputs[1]).shape) == 1:
        y = y.view((*y.shape, 1), (*y.strides, 0))
    if (
        m >= MIN_COPIED_ROWS
        and n >= MIN_COPIED_ROWS
        and k < LANES
        and y.strides[-1] == 1
        and b.strides[-1] != 1
    ):
        b = cx.innermost(b, len(b.shape) - 1)  # sums of few terms do not fill a vector
    batch_a, batch_b, batch_y = (cx.table(_batch_offsets(value, batch)) for value in (a, b, y))
    am, ak = a.strides[-2:]
    bk, bn = b.strides[-2:]
    ym, yn = y.strides[-2:]
    cx.emit(
        MatmulRow(
            a=a,
            b=b,
            y=y,
            B=math.prod(batch),
            batch_a=batch_a,
            batch_b=batch_b,
            batch_y=batch_y,
            M=m,
            K=k,
            N=n,
            am=am,
            ak=ak,
            bk=bk,
            bn=bn,
            ym=ym,
            yn=yn,
            scale=scale * scale_a * scale_b,
        )
    )
    cx.set_value(outlet, target)
    return target


def without_scale(cx: Lowering, outlet: OutletId) -> tuple[OutletId, float]:
    """Return the wire that is multiplied by a number to make an operand that waits for its product, and the number."""
    node = cx.graph.node(outlet)
    scale = scale_of(cx, node) if outlet in cx.pending else None
    if scale is None:
        return outlet, 1.0
    del cx.pending[outlet]
    slot, number = scale
    return node.inputs[slot], number


def with_scale(cx: Lowering, outlet: OutletId) -> tuple[OutletId, float]:
    """Return the wire of the product times a number, if only that is read, and the number; its node is then done."""
    readers = cx.graph.outlet(outlet).successors
    if len(readers) != 1 or cx.is_read_later(outlet):
        return outlet, 1.0
    reader = cx.graph.nodes[next(iter(readers)).node]
    scale = scale_of(cx, reader)
    if scale is None:
        return outlet, 1.0
    cx.done.add(reader.id)
    return OutletId(reader.id), scale[1]


def _batch_offsets(value: Value, batch: Sequence[int]) -> Array:
    lead = len(batch) - (len(value.shape) - 2)
    steps = [0] * lead + [s if n != 1 else 0 for n, s in zip(value.shape[:-2], value.strides[:-2])]
    return grid_offsets(steps, batch)
