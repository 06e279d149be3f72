"""Running sums."""

from pulse.errors import CompileError
from pulse.facts import dtype_name
from pulse.graph import OutletId
from pulse.ops.cumulative import CumSum, CumSumStream, sum_dtype
from pulse.program.kernels import cumulative as kernels
from pulse.program.kernels.dtypes import CODES
from pulse.program.lower.elementwise import Chain, store_chain
from pulse.program.lower.stream_state import StateTiming, restart_each_pulse
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.table.memory import Value
from pulse.support.wording import spell

SUMMED = "f32", "f64", "i64", "i32"


@lowers(CumSum)
def lower_cumsum(cx: Lowering, node: PulsedNode, op: CumSum) -> list[Value]:
    """Lower sums that restart in every pulse."""
    sizes = list(cx.fact(node.inputs[0]).sizes)
    sizes[op.axis] = 1
    sums = cx.temporary(sizes, sum_dtype(cx.fact(node.inputs[0]).dtype))
    return _lower_sums(cx, node, op, sums, restart_each_pulse(cx))


@lowers(CumSumStream)
def lower_cumsum_stream(cx: Lowering, node: PulsedNode, op: CumSumStream) -> list[Value]:
    """Lower sums that continue from pulse to pulse."""
    (first,) = op.begin()
    wide = first.astype(sum_dtype(op.dtype))
    sums = cx.allocate_state(wide, range(wide.ndim))
    return _lower_sums(cx, node, op.op, sums, StateTiming(cx.clock, cx.end(op.length), op.offset, False))


def _lower_sums(cx: Lowering, node: PulsedNode, op: CumSum, sums: Value, times: StateTiming) -> list[Value]:
    """Emit the sums of all columns, which are contiguous in memory; return the total too if it is an output."""
    x = cx.value(node.inputs[0])
    if dtype_name(x.dtype) not in SUMMED:
        raise CompileError(
            f"{node.name}: no kernel for sums of {dtype_name(x.dtype)}; use {spell('backend', 'numpy')}"
        )
    y = cx.new(OutletId(node.id))
    others = [axis for axis in range(len(x.shape)) if axis != op.axis]
    cx.emit(
        kernels.CumSumRow(
            x=x,
            y=y,
            sums=sums,
            dtype=CODES[x.dtype],
            T=x.shape[op.axis],
            M=sums.size,
            columns_x=cx.table(x.offsets(others)),
            columns_y=cx.table(y.offsets(others)),
            step_x=x.strides[op.axis],
            step_y=y.strides[op.axis],
            exclusive=op.exclusive,
            reverse=op.reverse,
            clock=times.clock,
            end=times.end,
            offset=times.offset,
            reload=times.reload,
        )
    )
    total = OutletId(node.id, 1)
    if not cx.graph.outlet(total).successors and not cx.is_read_later(total):
        return [y]
    whole = cx.new(total)
    columns = sums.reshape(whole.shape)
    assert columns is not None
    chain = Chain()
    chain.load(columns)
    store_chain(cx, chain, whole)
    return [y, whole]
