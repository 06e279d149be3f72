"""Entries are written and read at many indices at once.

Constant indices become slices, joins and one lookup, which stream on every other axis.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, is_symbolic, volume
from pulse.graph import OutletId
from pulse.infer.inference_node import same_type_and_shape
from pulse.infer.node_context import NodeContext
from pulse.onnx.operators.conv_columns import overlap_add
from pulse.onnx.operators.conv_zero_taps import count_zero_taps
from pulse.onnx.operators.gather import wrap_indices
from pulse.onnx.operators.gather_progression import progression
from pulse.onnx.operators.gather_steady import unchanging_values
from pulse.onnx.operators.scatter_range import write_axis, write_range
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.concat import Concat
from pulse.ops.dims import require_at_least
from pulse.ops.gather import Gather
from pulse.ops.indices import index_depth
from pulse.ops.pad import Pad
from pulse.ops.scatter import COMBINE, ScatterElements, ScatterND
from pulse.ops.shape import Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.support.record import record

MAX_REPEATED_UPDATES = 64
"""Updates of one place that are combined one after the other by separate ops."""


@record
class PlaceRange:
    """Neighbouring positions on the first axes: their start, and their number on each axis."""

    starts: tuple[TDim, ...]
    sizes: tuple[TDim, ...]


@onnx_op("ScatterND")
def scatter_nd(node: NodeContext) -> OutletId:
    """Update slices by index."""
    reduction = _reduction(node)
    x, indices = node.fact(0), node.fact(1)
    op = ScatterND(reduction)
    op.facts([x, indices, node.fact(2)])
    value = node.value(1)
    if value is None or is_symbolic(value):
        if reduction == "none":
            outlet = write_range(node, node.input(0), node.input(1), node.input(2))
        else:
            outlet = _overlap_add_frames(node) if reduction == "add" else None
    else:
        locations = value.reshape(-1, index_depth(x, indices)).astype(np.int64)
        outlet = _update_slices(node, node.input(0), node.input(2), locations, reduction)
    return outlet if outlet is not None else node.wire(op, [node.input(0), node.input(1), node.input(2)])


def _overlap_add_frames(node: NodeContext) -> OutletId | None:
    """Add frames at evenly spaced positions, as an inverse short-time transform does; None for other places."""
    x, outlet = node.fact(0), node.input(1)
    if index_depth(x, node.fact(1)) != 1 or not all(dim.is_const for dim in x.shape[1:]):
        return None
    while node.graph.node(outlet).op.keeps_order:
        outlet = node.graph.node(outlet).inputs[0]
    rows = progression(node.graph, outlet)
    if rows is None or rows.axis != 0 or rows.starts.ndim != 2:
        return None
    block, width = rows.starts.size, math.prod(int(dim) for dim in x.shape[1:])
    updates = volume(node.fact(2).shape)
    if (np.diff(rows.starts.ravel()) != 1).any() or updates != rows.length * (block * width):
        return None
    columns = node.wire(Reshape((rows.length, TDim.of(block), TDim.of(width))), [node.input(2)], "frames")
    columns = node.wire(Transpose((2, 1, 0)), [columns], "columns")
    zero_taps = count_zero_taps(node.graph, node.input(2), TDim.of(width), block)
    first = int(rows.starts.min())
    signal = overlap_add(
        node=node,
        x=columns,
        channels=1,
        block=block,
        stride=rows.step,
        before=0,
        image=x.shape[0] - first,
        zero_taps=zero_taps,
    )
    line = node.wire(Reshape((TDim.of(width), x.shape[0] - first)), [signal], "lines")
    line = node.wire(Transpose((1, 0)), [line], "transposed_back")
    if first:
        line = node.wire(Pad(((TDim.of(first), TDim.of(0)), (TDim.of(0), TDim.of(0)))), [line], "shifted")
    line = node.wire(Reshape(x.shape), [line], "overlap_added")
    zeros = unchanging_values(node.graph, node.input(0))
    if zeros is not None and not zeros.any():
        return node.name_result(line)
    return node.apply("add", node.input(0), line)


@onnx_op("ScatterElements", "Scatter")
def scatter_elements(node: NodeContext) -> OutletId:
    """Update elements by index."""
    reduction = _reduction(node)
    x = node.fact(0)
    axis = node.axis(node.integer("axis", 0), x.rank)
    op = ScatterElements(axis, reduction)
    op.facts([x, node.fact(1), node.fact(2)])
    inputs = [node.input(0), node.input(1), node.input(2)]
    outlet = _update_axis(node, axis, reduction)
    return outlet if outlet is not None else node.wire(op, inputs)


def _reduction(node: NodeContext) -> str:
    reduction = node.text("reduction", "none")
    if reduction != "none" and reduction not in COMBINE:
        raise node.error(f"reduction {reduction!r} is not supported")
    return reduction


def _update_axis(node: NodeContext, axis: int, reduction: str) -> OutletId | None:
    """Return updates at constant indices of one axis: the same on all other axes, or an index for each element."""
    indices = unchanging_values(node.graph, node.input(1))
    if indices is None:
        return None
    x, shape = node.fact(0), node.fact(1).shape
    others = [other for other in range(x.rank) if other != axis]
    if all(indices.shape[other] == 1 and shape[other] == x.shape[other] for other in others):
        order = (axis, *others)
        transposed = [
            node.wire(Transpose(order), [node.input(slot)], name) for slot, name in ((0, "x"), (2, "rows"))
        ]
        count = indices.size * (1 if indices.shape[axis] != 1 else int(shape[axis]))
        locations = np.broadcast_to(indices.ravel(), count).reshape(-1, 1)
        outlet = _update_slices(node, transposed[0], transposed[1], locations, reduction, "placed")
        back = tuple(order.index(a) for a in range(x.rank))
        return None if outlet is None else node.wire(Transpose(back), [outlet])
    if not all(dim.is_const for dim in shape):
        return None
    grid = np.indices([int(dim) for dim in shape])
    grid[axis] = indices
    locations = np.moveaxis(grid, 0, -1).reshape(-1, x.rank)
    return _update_slices(node, node.input(0), node.input(2), locations, reduction)


def _update_slices(
    node: NodeContext, x: OutletId, updates: OutletId, locations: Array, reduction: str, suffix: str = ""
) -> OutletId | None:
    """Return the tensor with its slices at ``places [N, K]`` updated; None if they cannot be counted."""
    fact = node.graph.fact(x)
    if not len(locations):
        return x
    depth = locations.shape[1]
    trailing_shape = fact.shape[depth:]
    box = _box(node, fact.shape, locations)
    if box is not None:
        part = _reshape(node, updates, (*box.sizes, *trailing_shape), "updates")
        if reduction != "none":
            part = node.apply(reduction, _slice_box(node, x, box), part, suffix="combined")
        return paste(node, x, part, box, suffix)
    sizes = fact.shape[:depth]
    if not all(size.is_const for size in sizes):
        return None
    numbers = tuple(int(size) for size in sizes)
    rows = np.ravel_multi_index(
        tuple(wrap_indices(node, locations[:, k], n) for k, n in enumerate(numbers)), numbers
    )
    count = int(np.prod(numbers))
    flat = _reshape(node, x, (TDim.of(count), *trailing_shape), "flat")
    parts = _reshape(node, updates, (TDim.of(len(locations)), *trailing_shape), "updates")
    outlet = (
        _replace(node, flat, parts, rows)
        if reduction == "none"
        else _combine(node, flat, parts, rows, reduction)
    )
    if outlet is None:
        return None
    return node.wire(Reshape(fact.shape), [outlet], suffix)


def _reshape(node: NodeContext, x: OutletId, shape: tuple[TDim, ...], suffix: str) -> OutletId:
    same = node.graph.fact(x).shape == shape
    return x if same else node.wire(Reshape(shape), [x], suffix)


def _box(node: NodeContext, shape: Sequence[TDim], locations: Array) -> PlaceRange | None:
    """Return the box that the places fill in row-major order."""
    starts: list[TDim] = []
    offsets: list[Array] = []
    sizes: list[int] = []
    for axis in range(locations.shape[1]):
        index, size = locations[:, axis], shape[axis]
        if size.is_const:
            index = wrap_indices(node, index, int(size))
        elif index.min() < 0 <= index.max():
            return None
        low, high = int(index.min()), int(index.max())
        starts.append(TDim.of(low) if low >= 0 else size + low)
        sizes.append(high - low + 1)
        offsets.append(index - low)
    if np.prod(sizes, dtype=np.float64) != len(locations):
        return None
    if not np.array_equal(np.stack(offsets), np.indices(sizes).reshape(len(sizes), -1)):
        return None
    return PlaceRange(tuple(starts), tuple(map(TDim.of, sizes)))


def _slice_box(node: NodeContext, x: OutletId, box: PlaceRange) -> OutletId:
    for axis, (start, size) in enumerate(zip(box.starts, box.sizes)):
        if node.graph.fact(x).shape[axis] != size:
            x = node.wire(Slice(axis, start, start + size), [x], f"inside{axis}")
    return x


def paste(
    node: NodeContext, x: OutletId, part: OutletId, box: PlaceRange, suffix: str, axis: int = 0
) -> OutletId:
    """Return the tensor with a box of it replaced by ``part``: one join for each axis that the box does not fill."""
    shape = node.graph.fact(x).shape
    partial_axes = [a for a in range(axis, len(box.sizes)) if shape[a] != box.sizes[a]]
    if not partial_axes:
        return part
    first = partial_axes[0]
    start, end = box.starts[first], box.starts[first] + box.sizes[first]
    inner = part
    if len(partial_axes) > 1:
        band = node.wire(Slice(first, start, end), [x], f"band{first}")
        inner = paste(node, band, part, box, f"inner{first}", first + 1)
    if not shape[first].is_const and start.is_const and start != 0:
        require_at_least(shape[first], end, "the written frames")
        written = write_axis(node, x, inner, first, start, end)
        if written is not None:
            return node.name_result(written)
    pieces = [inner]
    if start != 0:
        pieces.insert(0, node.wire(Slice(first, TDim.of(0), start), [x], f"before{first}"))
    if end != shape[first]:
        pieces.append(node.wire(Slice(first, end, shape[first]), [x], f"after{first}"))
    return node.wire(Concat(first), pieces, suffix)


def _replace(node: NodeContext, flat: OutletId, parts: OutletId, rows: Array) -> OutletId:
    """Return rows of ``flat`` or of ``parts``, by a map; for several parts of one row, the last one."""
    count = int(node.graph.fact(flat).shape[0])
    source = np.arange(count)
    source[rows] = count + np.arange(len(rows))
    both = node.wire(Concat(0), [flat, parts], "both")
    return node.wire(Gather(0), [both, node.constant(source, "map")], "selected")


def _combine(
    node: NodeContext, flat: OutletId, parts: OutletId, rows: Array, reduction: str
) -> OutletId | None:
    """Combine updates in rounds: each takes one update of every row that has any left."""
    rounds_of_updates = np.zeros(len(rows), np.int64)
    counts: dict[int, int] = {}
    for index, row in enumerate(rows.tolist()):
        rounds_of_updates[index] = counts.get(row, 0)
        counts[row] = int(rounds_of_updates[index]) + 1
    rounds = int(rounds_of_updates.max()) + 1
    if rounds > MAX_REPEATED_UPDATES:
        return None
    for index in range(rounds):
        mine = np.flatnonzero(rounds_of_updates == index)
        group_rows = node.wire(
            Gather(0), [flat, node.constant(rows[mine], f"rows{index}")], f"current{index}"
        )
        new = node.wire(Gather(0), [parts, node.constant(mine, f"update_indices{index}")], f"updates{index}")
        combined = node.apply(reduction, group_rows, new, suffix=f"combined{index}")
        flat = _replace(node, flat, combined, rows[mine])
    return flat


rule("ScatterND", "ScatterElements")(same_type_and_shape)
writes(ScatterND)(lambda w, op: w.emit("ScatterND", w.inputs, **_reduction_attribute(op)))


@writes(ScatterElements)
def write_scatter_elements(w: NodeWriter, op: ScatterElements) -> str:
    """Replace elements by updates, or combine them."""
    return w.emit("ScatterElements", w.inputs, axis=op.axis, **_reduction_attribute(op))


def _reduction_attribute(op: ScatterND | ScatterElements) -> dict[str, Any]:
    return {} if op.reduction == "none" else {"reduction": op.reduction}
