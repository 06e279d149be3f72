"""Scatters: entries are written to computed indices of a flat tensor, in one pass."""

import math

from pulse.graph import OutletId
from pulse.ops.scatter import ScatterElements, ScatterND
from pulse.program.kernels.scatter import ScatterRow
from pulse.program.lower.gather import element_indices, row_indices
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


@lowers(ScatterElements)
def lower_scatter_elements(lowering: Lowering, node: PulsedNode, op: ScatterElements) -> list[TensorView]:
    """Copy the input, then write single elements."""
    x, indices, updates = (lowering.value(outlet) for outlet in node.inputs)
    elements = element_indices(lowering, x.shape, indices, op.axis)
    return [_emit_scatter(lowering, node, x, elements, updates, 1, op.reduction)]


@lowers(ScatterND)
def lower_scatter_nd(lowering: Lowering, node: PulsedNode, op: ScatterND) -> list[TensorView]:
    """Copy the input, then write rows, which consist of the axes after the indexed ones."""
    x, indices, updates = (lowering.value(outlet) for outlet in node.inputs)
    run = math.prod(x.shape[indices.shape[-1] :])
    rows = row_indices(lowering, x.shape, indices, 0)
    return [_emit_scatter(lowering, node, x, rows, updates, run, op.reduction)]


def _emit_scatter(
    lowering: Lowering,
    node: PulsedNode,
    x: TensorView,
    indices: TensorView,
    updates: TensorView,
    run: int,
    reduction: str,
) -> TensorView:
    """Copy the input, then write runs of the updates to the indices."""
    if reduction != "none":
        raise lowering.no_kernel(f"the reduction {reduction}")
    y = lowering.allocate_wire(OutletId(node.id), range(len(x.shape)))
    if not y.is_dense(range(len(x.shape))):
        y = lowering.allocate_temporary(x.shape, x.dtype)
    lowering.copy(x, y)
    updates = lowering.order_axes(updates, range(len(updates.shape)))
    rows = x.size // run if run else 0
    size, count = run * x.dtype.itemsize, indices.size
    lowering.emit(ScatterRow(dst=y, indices=indices, src=updates, size=size, count=count, rows=rows))
    return y
