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
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.loops import Loops
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode

ROW_READERS = (Conv, MatMul)
"""The ops that read their operand by rows."""


def allocate_like(lowering: Lowering, outlet: OutletId, value: TensorView) -> TensorView:
    """Allocate memory for a wire, with the axis order of another tensor of the same rank."""
    if any(step == 0 and size != 1 for size, step in zip(value.shape, value.strides)):
        return lowering.allocate_wire(outlet)
    return lowering.allocate_wire(outlet, value.order)


def allocate_part(lowering: Lowering, outlet: OutletId, order: Sequence[int]) -> TensorView:
    """Allocate memory for an f32 wire, its axes in an order: a part of the concatenation that reads it, if any.

    The parts are joined along the innermost axis and are whole vectors; other readers must be products, which read
    rows with gaps as fast as others.
    """
    readers = [lowering.graph.nodes[inlet.node] for inlet in lowering.graph.outlet(outlet).successors]
    joins = [node for node in readers if isinstance(node.op, Concat)]
    others = [node for node in readers if not isinstance(node.op, (Concat, *ROW_READERS))]
    if len(joins) != 1 or others or lowering.is_read_later(outlet):
        return lowering.allocate_wire(outlet, order)
    node = joins[0]
    whole, op = OutletId(node.id), node.op
    sizes = [lowering.fact(part).sizes[order[-1]] for part in node.inputs]
    assert isinstance(op, Concat)
    if op.axis != order[-1] or any(size % LANES for size in sizes) or node.inputs.count(outlet) != 1:
        return lowering.allocate_wire(outlet, order)
    if whole not in lowering.allocated:
        readers = [lowering.graph.nodes[inlet.node].op for inlet in lowering.graph.outlet(whole).successors]
        if any(not isinstance(reader, ROW_READERS) for reader in readers) or lowering.is_read_later(whole):
            return lowering.allocate_wire(outlet, order)
        lowering.allocated[whole] = lowering.allocate_wire(whole, order)
    target, start = lowering.allocated[whole], sum(sizes[: node.inputs.index(outlet)])
    return target.part(op.axis, start, start + lowering.fact(outlet).sizes[op.axis])


@lowers(Concat)
def lower_concat(lowering: Lowering, node: PulsedNode, op: Concat) -> list[TensorView]:
    """Return a view if the parts are adjacent in memory, else copy each part that is not there already."""
    parts = [lowering.value(outlet) for outlet in node.inputs]
    view = _contiguous_parts(parts, op.axis)
    if view is not None:
        return [view]
    outlet, start = OutletId(node.id), 0
    joined = None if outlet in lowering.allocated else _emit_pairs(lowering, outlet, parts, op.axis)
    if joined is not None:
        return [joined]
    target = (
        lowering.allocated[outlet] if outlet in lowering.allocated else _allocate(lowering, outlet, parts)
    )
    for part in parts:
        part_target = target.part(op.axis, start, start + part.shape[op.axis])
        if part.buffer is not part_target.buffer or part.offset != part_target.offset:
            lowering.copy(part, part_target)
        start += part.shape[op.axis]
    return [target]


def _allocate(lowering: Lowering, outlet: OutletId, parts: Sequence[TensorView]) -> TensorView:
    """Allocate memory for joined parts, in the order of axes that its reader or the largest part suggests."""
    largest = max(parts, key=lambda part: part.size)
    order = _order_for_reshape(lowering, outlet, largest.strides)
    if order is None or any(largest.strides[axis] != 1 for axis in _innermost(lowering, outlet, order)):
        return allocate_like(lowering, outlet, largest)
    return lowering.allocate_wire(outlet, order)


def _innermost(lowering: Lowering, outlet: OutletId, order: Sequence[int]) -> list[int]:
    """Return the innermost axis that is longer than one, if there is one."""
    return [axis for axis in order if lowering.fact(outlet).sizes[axis] > 1][-1:]


def _emit_pairs(
    lowering: Lowering, outlet: OutletId, parts: Sequence[TensorView], axis: int
) -> TensorView | None:
    """Join two parts element by element if the reshape that reads the wire is then a view, as in a channel shuffle."""
    if len(parts) != 2 or any(part.dtype != np.float32 or part.shape[axis] != 1 for part in parts):
        return None
    order = _order_for_reshape(lowering, outlet, parts[0].strides)
    if order is None or _innermost(lowering, outlet, order) != [axis]:
        return None
    target = lowering.allocate_wire(outlet, order)
    tensors = [target.part(axis, 0, 1), *parts]
    loops = Loops.over(parts[0].shape, [tensor.strides for tensor in tensors], order).pad(2)
    if len(loops.sizes) != 2 or [inner for _, inner in loops.strides] != [2, 1, 1]:
        return None
    steps = [outer for outer, _ in loops.strides]
    lowering.emit(
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


def _order_for_reshape(lowering: Lowering, outlet: OutletId, strides: Sequence[int]) -> list[int] | None:
    """Return an axis order in which the reshape that reads the wire, perhaps after a transpose, is a view, or None.

    strides  the strides of the largest part, whose neighbouring axes must stay neighbours
    """
    fact = lowering.fact(outlet)
    axes, wire = list(range(fact.rank)), outlet
    while True:
        reader = lowering.only_reader(wire)
        if reader is None:
            return None
        wire = OutletId(reader.id)
        if isinstance(reader.op, Reshape):
            break
        if not isinstance(reader.op, Transpose):
            return None
        axes = [axes[axis] for axis in reader.op.perm]
    reshaped, sizes = list(lowering.fact(wire).sizes), [fact.sizes[axis] for axis in axes]
    groups = [[axes[i] for i in group] for _, group in matching_axes(reshaped, sizes)]
    stream = -1 if fact.stream is None else fact.stream.axis

    def nearness(group: list[int]) -> tuple[bool, int]:
        """Return the key by which axes are sorted: the stream first, then the largest steps in memory."""
        steps = [abs(strides[axis]) for axis in group if fact.sizes[axis] > 1 and strides[axis]]
        return stream not in group, -min(steps, default=0)

    return [axis for group in sorted(groups, key=nearness) for axis in group]


def _contiguous_parts(parts: Sequence[TensorView], axis: int) -> TensorView | None:
    """Return all parts as one tensor if they are in one buffer and each directly follows the previous one."""
    first, *rest = parts
    if not rest or any(part.buffer is not first.buffer or part.dtype != first.dtype for part in rest):
        return None
    longer = [part.strides[axis] for part in parts if part.shape[axis] > 1]
    strides = list(first.strides)
    strides[axis] = longer[0] if longer else rest[0].offset - first.offset
    total, offset = 0, first.offset
    for part in parts:
        other_steps = [
            step
            for i, (step, size) in enumerate(zip(part.strides, part.shape))
            if size > 1 and step != strides[i]
        ]
        if other_steps or part.offset != offset:
            return None
        total, offset = total + part.shape[axis], offset + part.shape[axis] * strides[axis]
    shape = [total if i == axis else size for i, size in enumerate(first.shape)]
    return first.view(shape, strides)
