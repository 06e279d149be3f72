"""Concatenation."""

from collections.abc import Sequence

import numpy as np

from pulse.graph import OutletId
from pulse.jit.language.simd import LANES
from pulse.ops.concat import Concat
from pulse.ops.conv import Conv
from pulse.ops.matmul import MatMul
from pulse.ops.shape import Reshape, Transpose
from pulse.program.kernels.copy import PairedCopyRow
from pulse.program.lower.shape import matching_axes
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.table.loops import Loops
from pulse.program.table.memory import Value

READ_IN_ROWS = (Conv, MatMul)
"""The ops that read their operand by rows."""


def allocate_like(cx: Lowering, outlet: OutletId, value: Value) -> Value:
    """Allocate memory for a wire, with the axis order of another tensor of the same rank."""
    if any(step == 0 and size != 1 for size, step in zip(value.shape, value.strides)):
        return cx.new(outlet)
    return cx.new(outlet, value.order)


def allocate_part(cx: Lowering, outlet: OutletId, order: Sequence[int]) -> Value:
    """Allocate memory for a wire of f32, its axes in an order: its place in the concatenation that reads it, if any.

    The parts are joined along the innermost axis and are whole vectors; other readers must be products, which read
    rows with gaps as fast as others.
    """
    readers = [cx.graph.nodes[inlet.node] for inlet in cx.graph.outlet(outlet).successors]
    joins = [node for node in readers if isinstance(node.op, Concat)]
    others = [node for node in readers if not isinstance(node.op, (Concat, *READ_IN_ROWS))]
    if len(joins) != 1 or others or cx.is_read_later(outlet):
        return cx.new(outlet, order)
    node = joins[0]
    whole, op = OutletId(node.id), node.op
    sizes = [cx.fact(part).sizes[order[-1]] for part in node.inputs]
    assert isinstance(op, Concat)
    if op.axis != order[-1] or any(size % LANES for size in sizes) or node.inputs.count(outlet) != 1:
        return cx.new(outlet, order)
    if whole not in cx.places:
        after = [cx.graph.nodes[inlet.node].op for inlet in cx.graph.outlet(whole).successors]
        if any(not isinstance(reader, READ_IN_ROWS) for reader in after) or cx.is_read_later(whole):
            return cx.new(outlet, order)
        cx.places[whole] = cx.new(whole, order)
    target, start = cx.places[whole], sum(sizes[: node.inputs.index(outlet)])
    return target.part(op.axis, start, start + cx.fact(outlet).sizes[op.axis])


@lowers(Concat)
def lower_concat(cx: Lowering, node: PulsedNode, op: Concat) -> list[Value]:
    """Return a view if the parts are adjacent in memory, else copy each part that is not in its place."""
    parts = [cx.value(outlet) for outlet in node.inputs]
    view = _contiguous_parts(parts, op.axis)
    if view is not None:
        return [view]
    outlet, start = OutletId(node.id), 0
    joined = None if outlet in cx.places else _emit_pairs(cx, outlet, parts, op.axis)
    if joined is not None:
        return [joined]
    target = cx.places[outlet] if outlet in cx.places else _allocate(cx, outlet, parts)
    for part in parts:
        place = target.part(op.axis, start, start + part.shape[op.axis])
        if part.buffer is not place.buffer or part.offset != place.offset:
            cx.copy(part, place)
        start += part.shape[op.axis]
    return [target]


def _allocate(cx: Lowering, outlet: OutletId, parts: Sequence[Value]) -> Value:
    """Allocate memory for joined parts, in the order of axes that its reader or the largest part suggests."""
    largest = max(parts, key=lambda part: part.size)
    order = _order_for_reshape(cx, outlet, largest.strides)
    if order is None or any(largest.strides[axis] != 1 for axis in _innermost(cx, outlet, order)):
        return allocate_like(cx, outlet, largest)
    return cx.new(outlet, order)


def _innermost(cx: Lowering, outlet: OutletId, order: Sequence[int]) -> list[int]:
    """Return the innermost axis that is longer than one, if there is one."""
    return [axis for axis in order if cx.fact(outlet).sizes[axis] > 1][-1:]


def _emit_pairs(cx: Lowering, outlet: OutletId, parts: Sequence[Value], axis: int) -> Value | None:
    """Join two parts element by element if the reshape that reads the wire is then a view, as in a channel shuffle."""
    if len(parts) != 2 or any(part.dtype != np.float32 or part.shape[axis] != 1 for part in parts):
        return None
    order = _order_for_reshape(cx, outlet, parts[0].strides)
    if order is None or _innermost(cx, outlet, order) != [axis]:
        return None
    target = cx.new(outlet, order)
    tensors = [target.part(axis, 0, 1), *parts]
    loops = Loops.over(parts[0].shape, [tensor.strides for tensor in tensors], order).pad(2)
    steps = [each[0] for each in loops.strides]
    if len(loops.sizes) != 2 or [each[1] for each in loops.strides] != [2, 1, 1]:
        return None
    cx.emit(
        PairedCopyRow(
            dst=target,
            src0=parts[0],
            src1=parts[1],
            rows=loops.sizes[0],
            columns=loops.sizes[1],
            step=steps[0],
            step0=steps[1],
            step1=steps[2],
        )
    )
    return target


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

    return [axis for group in sorted(groups, key=nearness) for axis in group]


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
        other_steps = [
            step
            for each, (step, size) in enumerate(zip(part.strides, part.shape))
            if size > 1 and step != strides[each]
        ]
        if other_steps or part.offset != place:
            return None
        total, place = total + part.shape[axis], place + part.shape[axis] * strides[axis]
    shape = [total if each == axis else size for each, size in enumerate(first.shape)]
    return first.view(shape, strides)
