"""Pools over windows."""

import numpy as np

from pulse.graph import OutletId
from pulse.ops.pool import Pool
from pulse.program.kernels.pool import PoolRow
from pulse.program.kernels.reduce import MAX, SUM
from pulse.program.lower.elementwise import Chain, emit_chain, store_chain
from pulse.program.lower.pad import pad_axes
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


@lowers(Pool)
def lower_pool(lowering: Lowering, node: PulsedNode, op: Pool) -> list[TensorView]:
    """Emit a pool: its rows are the output positions, each over the channels if they are innermost."""
    outlet = OutletId(node.id)
    x = lowering.require_f32(lowering.value(node.inputs[0]), "a pool")
    rank = len(op.kernel)
    fill = -np.inf if op.kind == "max" else 0.0
    amounts = [(0, 0), (0, 0), *((int(before), int(after)) for before, after in op.pads)]
    x = pad_axes(lowering, x, amounts, list(x.order), fill)
    if op.kind == "lp":
        x = emit_chain(lowering, x, ("abs", 0.0), ("powc", float(op.p)))
    order = list(x.order)
    y = lowering.allocate_wire(outlet, order)
    run_axis = next(
        (axis for axis in (0, 1) if x.strides[axis] == 1 and y.strides[axis] == 1 and x.shape[axis] > 1), None
    )
    outer_axes = [axis for axis in (0, 1) if axis != run_axis]
    rows_in = x.view(
        [*(x.shape[a] for a in outer_axes), *y.shape[2:]],
        [*(x.strides[a] for a in outer_axes), *(s * n for s, n in zip(op.strides, x.strides[2:]))],
    )
    taps = x.view(op.kernel, [d * n for d, n in zip(op.dilations, x.strides[2:])])
    rows = list(range(len(outer_axes) + rank))
    scale = 1 / float(np.prod(op.kernel)) if op.kind == "average" and not op.counts_position else 1.0
    lowering.emit(
        PoolRow(
            x=x,
            y=y,
            M=int(np.prod(rows_in.shape)),
            rows_x=lowering.add_table(rows_in.offsets(rows)),
            rows_y=lowering.add_table(y.offsets([*outer_axes, *range(2, 2 + rank)])),
            T=int(np.prod(op.kernel)),
            taps=lowering.add_table(taps.offsets(range(rank))),
            C=1 if run_axis is None else x.shape[run_axis],
            kind=MAX if op.kind == "max" else SUM,
            scale=scale,
        )
    )
    return [_emit_last_step(lowering, op, y, x)]


def _emit_last_step(lowering: Lowering, op: Pool, y: TensorView, x: TensorView) -> TensorView:
    """Divide by counts that depend on the position, or take the root of an Lp pool."""
    if op.kind == "lp":
        chain = Chain()
        chain.apply("powc", (chain.load(y),), (1.0 / op.p,))
        store_chain(lowering, chain, y)
    if op.counts_position:
        sizes = [n - int(b) - int(a) for n, (b, a) in zip(x.shape[2:], op.pads)]
        divisor = op.divisor(np.ones((1, 1, *sizes), np.float32), {})
        chain = Chain()
        chain.apply(
            "div", (chain.load(y), chain.load(lowering.add_constant(np.asarray(divisor, np.float32))))
        )
        store_chain(lowering, chain, y)
    return y
