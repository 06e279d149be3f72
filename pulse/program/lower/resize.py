"""Resizing of a run of frames: each phase is a strided copy or a weighted sum of two strided views."""

from pulse.graph import OutletId
from pulse.ops.resize import Polyphase
from pulse.program.lower.elementwise import Chain, store_chain
from pulse.program.lower.movement import like
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.memory import Value


@lowers(Polyphase)
def lower_polyphase(cx: Lowering, node: PulsedNode, op: Polyphase) -> list[Value]:
    """One instruction for each phase, over all groups at once."""
    x = cx.value(node.inputs[0])
    y = like(cx, OutletId(node.id), x)
    phases = len(op.taps)
    reach = (y.shape[op.axis] // phases - 1) * op.stride + 1
    for phase, taps in enumerate(op.taps):
        target = y.part(op.axis, phase, y.shape[op.axis], phases)
        views = [x.part(op.axis, k, k + reach, op.stride) for k, _ in taps]
        if len(taps) == 1:
            cx.copy(views[0], target)
            continue
        chain = Chain()
        shares = [
            chain.apply("mulc", (chain.load(view),), (weight,)) for view, (_, weight) in zip(views, taps)
        ]
        chain.apply("add", shares)
        store_chain(cx, chain, target)
    return [y]
