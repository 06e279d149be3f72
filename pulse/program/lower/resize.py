"""Resizing: each phase is a strided copy or a weighted sum of strided views."""

from collections.abc import Sequence

from pulse.graph import OutletId
from pulse.ops.resize import Polyphase
from pulse.program.kernels.elementwise import MAX_INPUTS
from pulse.program.lower.concat import allocate_like
from pulse.program.lower.elementwise import Chain, store_chain
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


@lowers(Polyphase)
def lower_polyphase(lowering: Lowering, node: PulsedNode, op: Polyphase) -> list[TensorView]:
    """Emit one instruction for each phase, over all groups at once; more for a sum of many frames."""
    x = lowering.value(node.inputs[0])
    y = allocate_like(lowering, OutletId(node.id), x)
    phases = len(op.taps)
    reach = (y.shape[op.axis] // phases - 1) * op.stride + 1
    for phase, taps in enumerate(op.taps):
        target = y.part(op.axis, phase, y.shape[op.axis], phases)
        views = [x.part(op.axis, k, k + reach, op.stride) for k, _ in taps]
        if len(taps) == 1:
            lowering.copy(views[0], target)
            continue
        weighted = list(zip(views, (weight for _, weight in taps)))
        for start in range(0, len(weighted), MAX_INPUTS - 1):
            _emit_sum(lowering, weighted[start : start + MAX_INPUTS - 1], target, start > 0)
    return [y]


def _emit_sum(
    lowering: Lowering, weighted: Sequence[tuple[TensorView, float]], target: TensorView, accumulate: bool
) -> None:
    """Write a weighted sum to the output; with ``accumulate``, add it to the values there."""
    chain = Chain()
    total = chain.load(target) if accumulate else None
    for view, weight in weighted:
        share = chain.apply("mulc", (chain.load(view),), (weight,))
        total = share if total is None else chain.apply("add", (total, share))
    store_chain(lowering, chain, target)
