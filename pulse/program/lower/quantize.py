"""Functions of codes, computed by tables."""

from pulse.graph import OutletId
from pulse.ops.quantize import CodeTable
from pulse.program.kernels.quantize import LookUpCodesRow
from pulse.program.lower.elementwise import result_order
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


@lowers(CodeTable)
def lower_code_table(lowering: Lowering, node: PulsedNode, op: CodeTable) -> list[TensorView]:
    """Look up the elements in their order in memory."""
    outlet = OutletId(node.id)
    x, table = lowering.value(node.inputs[0]), lowering.value(node.inputs[1])
    order = result_order(lowering, outlet, [x])
    x = lowering.order_axes(x, order)
    y = lowering.allocate_temporary(x.shape, x.dtype, order)
    row = LookUpCodesRow(
        x=x, table=lowering.order_axes(table, [0]), y=y, count=y.size, first=op.first, size=table.size
    )
    lowering.emit(row)
    return [y]
