"""Softmax and layer normalisation: rows of contiguous elements."""

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.norm import LayerNorm, Softmax
from pulse.program.kernels.norm import LayerNormRow, SoftmaxRow
from pulse.program.lower.elementwise import broadcast
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


@lowers(Softmax)
def lower_softmax(lowering: Lowering, node: PulsedNode, op: Softmax) -> list[TensorView]:
    """Emit one row for each position of the other axes."""
    x = lowering.make_innermost(lowering.require_f32(lowering.value(node.inputs[0]), "a softmax"), op.axis)
    order = [*(axis for axis in x.order if axis != op.axis), op.axis]
    y = lowering.allocate_wire(OutletId(node.id), order)
    rows = [axis for axis in range(len(x.shape)) if axis != op.axis]
    lowering.emit(
        SoftmaxRow(
            x=x,
            y=y,
            M=y.size // max(1, x.shape[op.axis]),
            rows_x=lowering.add_table(x.offsets(rows)),
            rows_y=lowering.add_table(y.offsets(rows)),
            R=x.shape[op.axis],
            log=op.log,
        )
    )
    return [y]


@lowers(LayerNorm)
def lower_layer_norm(lowering: Lowering, node: PulsedNode, op: LayerNorm) -> list[TensorView]:
    """Emit one row for each position of the leading axes; scale and bias have a row's shape."""
    x = lowering.require_f32(lowering.value(node.inputs[0]), "a layer normalisation")
    rank = len(x.shape)
    outer_axes, row_axes = list(range(op.axis)), list(range(op.axis, rank))
    order = [*(axis for axis in x.order if axis in outer_axes), *row_axes]
    x = x if x.is_dense(row_axes) else lowering.order_axes(x, order)
    y = lowering.allocate_wire(OutletId(node.id), order)
    shape = x.shape[op.axis :]
    defaults = [np.ones(shape, np.float32), np.zeros(shape, np.float32)]
    scale, bias = (
        lowering.order_axes(_broadcast_parameter(lowering, node, slot + 1, part), range(len(shape)))
        for slot, part in enumerate(defaults)
    )
    size = int(np.prod(shape, dtype=np.int64))
    lowering.emit(
        LayerNormRow(
            x=x,
            scale=scale,
            bias=bias,
            y=y,
            M=y.size // max(1, size),
            rows_x=lowering.add_table(x.offsets(outer_axes)),
            rows_y=lowering.add_table(y.offsets(outer_axes)),
            R=size,
            eps=op.epsilon,
        )
    )
    return [y]


def _broadcast_parameter(lowering: Lowering, node: PulsedNode, slot: int, neutral: Array) -> TensorView:
    """Broadcast scale or bias to all normalised axes."""
    if slot >= len(node.inputs):
        return lowering.add_constant(neutral)
    constant = lowering.known_value(node.inputs[slot])
    if constant is not None:
        return lowering.add_constant(np.array(np.broadcast_to(constant, neutral.shape), np.float32))
    return broadcast(
        lowering.require_f32(lowering.value(node.inputs[slot]), "a scale or bias"), neutral.shape
    )
