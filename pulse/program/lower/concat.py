"""Tensors side by side."""

from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.memory import Value


def like(cx: Lowering, outlet: OutletId, value: Value) -> Value:
    """Memory for a wire with its axes as another tensor of the same rank has them."""
    if any(step == 0 and size != 1 for size, step in zip(value.shape, value.strides)):
        return cx.new(outlet)
    return cx.new(outlet, value.order)


@lowers(Concat)
def lower_concat(cx: Lowering, node: PulsedNode, op: Concat) -> list[Value]:
    """Each part copied to its place."""
    parts = [cx.value(outlet) for outlet in node.inputs]
    target = like(cx, OutletId(node.id), max(parts, key=lambda part: part.size))
    start = 0
    for part in parts:
        cx.copy(part, target.part(op.axis, start, start + part.shape[op.axis]))
        start += part.shape[op.axis]
    return [target]
