"""Searches along an axis."""

from pulse.graph import OutletId
from pulse.ops.search import TopK
from pulse.program.kernels.search import TopRow
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.table.memory import Value


@lowers(TopK)
def lower_top_k(cx: Lowering, node: PulsedNode, op: TopK) -> list[Value]:
    """Emit one row for each position of the other axes; values and indices have the same layout."""
    x = cx.floats(cx.value(node.inputs[0]), "a search")
    outlets = [OutletId(node.id, slot) for slot in range(2)]
    order = cx.stream_first(outlets[0])
    values, indices = (
        cx.temporary(fact.sizes, fact.dtype, order) for fact in (cx.fact(outlet) for outlet in outlets)
    )
    others = [axis for axis in range(len(x.shape)) if axis != op.axis]
    rows = x.offsets(others)
    cx.emit(
        TopRow(
            x=x,
            values=values,
            indices=indices,
            M=len(rows),
            rows_x=cx.table(rows),
            rows_y=cx.table(values.offsets(others)),
            R=x.shape[op.axis],
            stride=x.strides[op.axis],
            K=op.count,
            step=values.strides[op.axis],
            largest=op.largest,
        )
    )
    return [values, indices]
