"""Rewrites that only streaming needs. They keep the offline meaning and make whole-stream terms explicit."""

from dataclasses import replace

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.graph import OutletId
from pulse.ops.conv import NO_PAD
from pulse.ops.elementwise import Elementwise
from pulse.ops.pad import Pad
from pulse.ops.pool import Pool
from pulse.ops.shape import Expand
from pulse.patch import Patch
from pulse.pulsify.first_frames import begin_scan, hold_first_frame, join_frames, repeat_first_frame
from pulse.typed import TypedNetwork


def prepare_model(model: TypedNetwork, symbol: Symbol) -> TypedNetwork:
    """Rewrite averages over padded streams as quotients of sums, and uses of first frames as choices by position."""
    result, changed = model.copy(), False
    for node_id in result.graph.order():
        node = result.graph.nodes[node_id]
        if isinstance(node.op, Pool) and node.op.counts_position:
            fact = result.graph.fact(node.inputs[0])
            axes = [axis - 2 for axis in fact.symbolic_axes(symbol) if axis >= 2]
            if any(node.op.pads[axis] != (0, 0) for axis in axes):
                _average_as_quotient(result, node_id, node.op)
                changed = True
            continue
        rewrites = (repeat_first_frame, join_frames, hold_first_frame, begin_scan)
        patch = next(filter(None, (rewrite(result.graph, node_id, symbol) for rewrite in rewrites)), None)
        if patch is not None:
            patch.apply()
            changed = True
    return result.copy() if changed else result


def _average_as_quotient(model: TypedNetwork, node_id: int, op: Pool) -> None:
    """Rewrite a mean as the sum of x divided by the count of frames, which is the same sum of ones."""
    node = model.graph.nodes[node_id]
    patch = Patch(model.graph)
    x = patch.tap(node.inputs[0])
    fact = patch.graph.fact(x)
    total = replace(op, kind="sum", count_include_pad=False, extra=())
    one = patch.add_constant(f"{node.name}.one", np.ones((1,) * fact.rank, fact.dtype))
    shape = (TDim.of(1), TDim.of(1), *fact.shape[2:])
    counted = patch.wire(f"{node.name}.ones", Expand(shape), [one])[0]
    count_op = total
    if op.count_include_pad:
        extra = op.extra or (TDim.of(0),) * len(op.kernel)
        pads = tuple((before, after - more) for (before, after), more in zip(op.pads, extra))
        counted = patch.wire(f"{node.name}.counted", Pad((NO_PAD, NO_PAD, *pads), fill=1.0), [counted])[0]
        count_op = replace(total, pads=tuple((TDim.of(0), more) for more in extra))
    sums = patch.wire(f"{node.name}.sum", total, [x])[0]
    count = patch.wire(f"{node.name}.count", count_op, [counted])[0]
    patch.shunt(OutletId(node_id), patch.wire(f"{node.name}.mean", Elementwise("div"), [sums, count])[0])
    patch.apply()
