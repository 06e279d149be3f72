"""Searches along an axis."""

from pulse.graph import OutletId
from pulse.ops.search import TopK
from pulse.program.kernels.search import TopKRow
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


@lowers(TopK)
def lower_top_k(lowering: Lowering, node: PulsedNode, op: TopK) -> list[TensorView]:
    """Emit one row for each position of the other axes; values and indices have the same layout."""
    x = lowering.require_f32(lowering.value(node.inputs[0]), "a search")
    outlets = [OutletId(node.id, slot) for slot in range(2)]
    order = lowering.stream_first(outlets[0])
    values, indices = (
        lowering.allocate_temporary(fact.sizes, fact.dtype, order)
        for fact in (lowering.fact(outlet) for outlet in outlets)
    )
    others = [axis for axis in range(len(x.shape)) if axis != op.axis]
    rows = x.offsets(others)
    lowering.emit(
        TopKRow(
            x=x,
            values=values,
            indices=indices,
            M=len(rows),
            rows_x=lowering.add_table(rows),
            rows_y=lowering.add_table(values.offsets(others)),
            R=x.shape[op.axis],
            stride=x.strides[op.axis],
            K=op.count,
            step=values.strides[op.axis],
            largest=op.largest,
        )
    )
    return [values, indices]
