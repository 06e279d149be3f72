"""Rows that are rounded to codes, by the product that reads them or in their own instruction."""

from pulse.graph import OutletId
from pulse.ops.quantize_activations import RoundActivations
from pulse.program.kernels.quantize_activations import QuantizeRow
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


@lowers(RoundActivations)
def lower_round_activations(lowering: Lowering, node: PulsedNode, op: RoundActivations) -> list[TensorView]:
    """Leave the wire pending until a reader needs the rounded values rather than codes."""
    outlet = OutletId(node.id)
    lowering.leave_pending(outlet, lambda: _emit_rounding(lowering, outlet, op))
    return []


def unrounded_activations(lowering: Lowering, outlet: OutletId) -> OutletId | None:
    """Return the wire whose rows this wire has rounded; None if it is not a wire of rounded rows."""
    node = lowering.graph.node(outlet)
    return node.inputs[0] if isinstance(node.op, RoundActivations) else None


def _emit_rounding(lowering: Lowering, outlet: OutletId, op: RoundActivations) -> TensorView:
    """Round the rows of each group by a separate instruction; return a temporary."""
    x = lowering.make_innermost(
        lowering.require_f32(lowering.value(lowering.graph.node(outlet).inputs[0]), "rows"), op.axis
    )
    order = [*(axis for axis in x.order if axis != op.axis), op.axis]
    y = lowering.allocate_temporary(x.shape, x.dtype, order)
    others, size = [axis for axis in range(len(x.shape)) if axis != op.axis], x.shape[op.axis] // op.groups
    for group in range(op.groups):
        part, target = (value.part(op.axis, group * size, (group + 1) * size) for value in (x, y))
        rows_x, rows_y = part.offsets(others), target.offsets(others)
        row = QuantizeRow(
            x=part,
            y=target,
            M=len(rows_x),
            rows_x=lowering.add_table(rows_x),
            rows_y=lowering.add_table(rows_y),
            K=size,
            halves=op.form == "bf16",
        )
        lowering.emit(row)
    return y
