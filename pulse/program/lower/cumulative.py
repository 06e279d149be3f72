"""Running sums."""

from pulse.facts import dtype_name
from pulse.graph import OutletId
from pulse.ops.cumulative import CumSum, CumSumStream, sum_dtype
from pulse.program.kernels import cumulative as kernels
from pulse.program.kernels.dtypes import CODES
from pulse.program.lower.elementwise import Chain, store_chain
from pulse.program.lower.stream_state import StateTiming, restart_each_pulse, stream_timing
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode

SUM_DTYPES = "f32", "f64", "i64", "i32"
"""The types that the kernel sums."""


@lowers(CumSum)
def lower_cum_sum(lowering: Lowering, node: PulsedNode, op: CumSum) -> list[TensorView]:
    """Emit sums that restart in every pulse."""
    sizes = list(lowering.fact(node.inputs[0]).sizes)
    sizes[op.axis] = 1
    sums = lowering.allocate_temporary(sizes, sum_dtype(lowering.fact(node.inputs[0]).dtype))
    return _emit_sums(lowering, node, op, sums, restart_each_pulse(lowering))


@lowers(CumSumStream)
def lower_cum_sum_stream(lowering: Lowering, node: PulsedNode, op: CumSumStream) -> list[TensorView]:
    """Emit sums that continue from pulse to pulse."""
    (first,) = op.initial_state()
    initial = first.astype(sum_dtype(op.dtype))
    sums = lowering.allocate_state(initial, range(initial.ndim))
    return _emit_sums(lowering, node, op.op, sums, stream_timing(lowering, op, False))


def _emit_sums(
    lowering: Lowering, node: PulsedNode, op: CumSum, sums: TensorView, times: StateTiming
) -> list[TensorView]:
    """Emit the sums of all columns, which are contiguous in memory; return the total too if it is an output."""
    x = lowering.value(node.inputs[0])
    if dtype_name(x.dtype) not in SUM_DTYPES:
        raise lowering.no_kernel(f"sums of {dtype_name(x.dtype)}")
    y = lowering.allocate_wire(OutletId(node.id))
    others = [axis for axis in range(len(x.shape)) if axis != op.axis]
    lowering.emit(
        kernels.CumSumRow(
            x=x,
            y=y,
            sums=sums,
            dtype=CODES[x.dtype],
            T=x.shape[op.axis],
            M=sums.size,
            columns_x=lowering.add_table(x.offsets(others)),
            columns_y=lowering.add_table(y.offsets(others)),
            step_x=x.strides[op.axis],
            step_y=y.strides[op.axis],
            exclusive=op.exclusive,
            reverse=op.reverse,
            **times.fields(),
        )
    )
    total = OutletId(node.id, 1)
    if not lowering.graph.outlet(total).successors and not lowering.is_read_later(total):
        return [y]
    whole = lowering.allocate_wire(total)
    columns = sums.reshape(whole.shape)
    assert columns is not None
    chain = Chain()
    chain.load(columns)
    store_chain(lowering, chain, whole)
    return [y, whole]
