"""Concatenation."""

from collections.abc import Sequence

from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.shape import Reshape, Transpose
from pulse.program.lower.shape import matching_axes
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.table.memory import Value


def allocate_like(cx: Lowering, outlet: OutletId, value: Value) -> Value:
    """Allocate memory for a wire, with the axis order of another tensor of the same rank."""
    if any(step == 0 and size != 1 for size, step in zip(value.shape, value.strides)):
        return cx.new(outlet)
    return cx.new(outlet, value.order)


@lowers(Concat)
def lower_concat(cx: Lowering, node: PulsedNode, op: Concat) -> list[Value]:
    """Return a view if the parts are adjacent in memory, else copy each part."""
    parts = [cx.value(outlet) for outlet in node.inputs]
    view = _contiguous_parts(parts, op.axis)
    if view is not None:
        return [view]
    outlet, largest = OutletId(node.id), max(parts, key=lambda part: part.size)
    order = _order_for_reshape(cx, outlet, largest.strides)
    target = allocate_like(cx, outlet, largest) if order is None else cx.new(outlet, order)
    start = 0
    for part in parts:
        cx.copy(part, target.part(op.axis, start, start + part.shape[op.axis]))
        start += part.shape[op.axis]
    return [target]


def _order_for_reshape(cx: Lowering, outlet: OutletId, strides: Sequence[int]) -> list[int] | None:
    """Return an axis order in which the reshape that reads the wire, perhaps after a transpose, is a view, or None.

    strides  of the largest part, whose neighbouring axes must stay neighbours
    """
    graph, fact = cx.graph, cx.fact(outlet)
    axes, at = list(range(fact.rank)), outlet
    while True:
        readers = graph.outlet(at).successors
        if len(readers) != 1 or cx.is_read_later(at):
            return None
        reader = graph.nodes[next(iter(readers)).node]
        at = OutletId(reader.id)
        if isinstance(reader.op, Reshape):
            break
        if not isinstance(reader.op, Transpose):
            return None
        axes = [axes[axis] for axis in reader.op.perm]
    groups = [
        [axes[place] for place in places]
        for _, places in matching_axes(list(cx.fact(at).sizes), [fact.sizes[axis] for axis in axes])
    ]
    stream = -1 if fact.stream is None else fact.stream.axis

    def nearness(group: list[int]) -> tuple[bool, int]:
        steps = [abs(strides[axis]) for axis in group if fact.sizes[axis] > 1 and strides[axis]]
        return stream not in group, -min(steps, default=0)

    order = [axis for group in sorted(groups, key=nearness) for axis in group]
    innermost = [axis for axis in order if fact.sizes[axis] > 1][-1:]
    return order if all(strides[axis] == 1 for axis in innermost) else None


def _contiguous_parts(parts: Sequence[Value], axis: int) -> Value | None:
    """Return all parts as one tensor if they are in one buffer and each directly follows the previous one."""
    first, *rest = parts
    if not rest or any(part.buffer is not first.buffer or part.dtype != first.dtype for part in rest):
        return None
    longer = [part.strides[axis] for part in parts if part.shape[axis] > 1]
    strides = list(first.strides)
    strides[axis] = longer[0] if longer else rest[0].offset - first.offset
    total, place = 0, first.offset
    for part in parts:
        own = [
            step
            for each, (step, size) in enumerate(zip(part.strides, part.shape))
            if size > 1 and step != strides[each]
        ]
        if own or part.offset != place:
            return None
        total, place = total + part.shape[axis], place + part.shape[axis] * strides[axis]
    shape = [total if each == axis else size for each, size in enumerate(first.shape)]
    return first.view(shape, strides)
