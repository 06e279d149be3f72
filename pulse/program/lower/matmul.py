"""Matrix products."""

import math

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.jit.language.simd import LANES
from pulse.ops.matmul import MatMul, packed_operand
from pulse.program.kernels.matmul.batches import MatmulRow
from pulse.program.lower.elementwise import find_scale
from pulse.program.lower.matmul_epilogue import find_epilogue
from pulse.program.lower.matmul_product import emit_product, require_stored
from pulse.program.lower.matmul_windows import WindowProduct, batch_offsets
from pulse.program.lower.quantize_activations import unrounded_activations
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode

MIN_COPIED_ROWS = 8
"""Minimum number of rows and columns of a matrix that is copied; for fewer, it costs more than it saves."""


@lowers(MatMul)
def lower_matmul(lowering: Lowering, node: PulsedNode, op: MatMul) -> list[TensorView]:
    """Pack a constant matrix on either side; otherwise emit a batched product of two tensors."""
    outlet = OutletId(node.id)
    facts = [lowering.fact(operand) for operand in node.inputs]
    side = packed_operand(facts)
    if side is None:
        return [_emit_batched_product(lowering, node, *take_result_scale(lowering, outlet))]
    stored = require_stored(lowering, node, side, "its matrix")
    source = unrounded_activations(lowering, node.inputs[1 - side])
    x = lowering.require_f32(lowering.value(source or node.inputs[1 - side]), "a matrix product")
    # y[..., n] = sum_k x[..., k] matrix[k, n], or y[..., m, n] = sum_k matrix[m, k] x[..., k, n]
    summed_axis = len(x.shape) - (1 if side == 1 else 2)
    matrix = stored.codes if side == 1 else stored.codes.T
    x = lowering.make_innermost(x, summed_axis)
    y = _emit_matrix_product(lowering, outlet, x, matrix, stored.scales_of(), summed_axis, source is not None)
    return [y]


def _emit_matrix_product(
    lowering: Lowering,
    outlet: OutletId,
    x: TensorView,
    matrix: Array,
    scales: Array | None,
    columns: int,
    rounds_activations: bool,
) -> TensorView:
    """Multiply the axis ``columns`` of x by a matrix, at every position of the other axes."""
    rows = [axis for axis in range(len(x.shape)) if axis != columns]
    fused = find_epilogue(lowering, outlet, columns, gates=True)
    order = [axis for axis in x.order if axis != columns] + [columns]
    y = fused.allocate(lowering, lowering.fact(outlet).sizes, order)
    bias = np.zeros(matrix.shape[1], np.float32) if fused.bias is None else fused.bias

    def rows_of(value: TensorView) -> Array:
        """Return the offset of each row of the product in a tensor with the axes of the result."""
        return value.offsets(rows)

    product = WindowProduct(
        x=x,
        rows_x=rows_of(x),
        taps=np.zeros(1, np.int64),
        matrix=matrix,
        bias=bias,
        y=y,
        rows_y=rows_of(y),
        scales=scales,
        epilogue=fused.steps_on(lowering, y, rows_of),
        rounds_activations=rounds_activations,
    )
    emit_product(lowering, product)
    fused.set_value(lowering, y)
    return y


def _emit_batched_product(lowering: Lowering, node: PulsedNode, outlet: OutletId, scale: float) -> TensorView:
    """Emit the batched product of two tensors times a scale, as the wire ``outlet``."""
    (first, scale_a), (second, scale_b) = (take_operand_scale(lowering, operand) for operand in node.inputs)
    a, b = (lowering.require_f32(lowering.value(operand), "a matrix product") for operand in (first, second))
    a = a.view((1, *a.shape), (0, *a.strides)) if len(a.shape) == 1 else a
    b = b.view((*b.shape, 1), (*b.strides, 0)) if len(b.shape) == 1 else b
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    target = lowering.allocate_wire(outlet, None)
    y = _as_matrices(target, *(lowering.fact(operand).rank for operand in node.inputs))
    if (
        m >= MIN_COPIED_ROWS
        and n >= MIN_COPIED_ROWS
        and k < LANES
        and y.strides[-1] == 1
        and b.strides[-1] != 1
    ):
        b = lowering.make_innermost(b, len(b.shape) - 1)  # sums of few terms do not fill a vector
    batch_a, batch_b, batch_y = (lowering.add_table(batch_offsets(value, batch)) for value in (a, b, y))
    am, ak = a.strides[-2:]
    bk, bn = b.strides[-2:]
    ym, yn = y.strides[-2:]
    lowering.emit(
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
    lowering.set_value(outlet, target)
    return target


def _as_matrices(y: TensorView, rank_a: int, rank_b: int) -> TensorView:
    """View the result as matrices: with an axis of size 1 for each operand that is a vector."""
    if rank_a == 1 and rank_b == 1:
        return y.view((1, 1), (0, 0))
    if rank_a == 1:
        return y.view((*y.shape[:-1], 1, y.shape[-1]), (*y.strides[:-1], 0, y.strides[-1]))
    if rank_b == 1:
        return y.view((*y.shape, 1), (*y.strides, 0))
    return y


def take_operand_scale(lowering: Lowering, outlet: OutletId) -> tuple[OutletId, float]:
    """Return the wire and the number whose product is a pending operand, which is then no longer pending."""
    node = lowering.graph.node(outlet)
    scale = find_scale(lowering, node) if lowering.pending_functions(outlet) else None
    if scale is None:
        return outlet, 1.0
    lowering.include_pending(outlet)
    slot, number = scale
    return node.inputs[slot], number


def take_result_scale(lowering: Lowering, outlet: OutletId) -> tuple[OutletId, float]:
    """Take over a product times a number if only that is read; return its wire and the number, else the wire and 1."""
    reader = lowering.only_reader(outlet)
    scale = None if reader is None else find_scale(lowering, reader)
    if reader is None or scale is None:
        return outlet, 1.0
    lowering.claim(reader.id)
    return OutletId(reader.id), scale[1]
