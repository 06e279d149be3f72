"""Writes to neighbouring frames of an axis of any length (``y[..., -3:] = 0``): frames are chosen by their position."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pulse.declutter.conditions import uniform_value
from pulse.dim import TDim
from pulse.facts import I64, Array
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.operators.gather_progression import strip_clamp
from pulse.onnx.operators.scatter_place import WrittenPlace, place_updates
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Elementwise
from pulse.ops.pad import Pad
from pulse.ops.shape import AddAxis, Expand, Reshape
from pulse.ops.slice import Slice
from pulse.ops.time_position import Range
from pulse.support.record import record
from pulse.typed import TypedGraph, known_value

ZERO = TDim.of(0)


@record
class Line:
    """A tensor of the integers ``start`` … ``end - 1`` along one axis, and the same along the others.

    axis  the axis; None if it has one integer
    """

    start: TDim
    end: TDim
    axis: int | None


def write_range(node: NodeContext, x: OutletId, indices: OutletId, updates: OutletId) -> OutletId | None:
    """Return x with the updates at neighbouring indices of an axis of any length, in a box of the other indexed axes.

    Returns None for other indices, and for updates that cannot be placed by position
    """
    graph = node.graph
    shape, lines = graph.fact(x).shape, _columns(graph, indices)
    if lines is None or graph.fact(indices).rank != len(lines) + 1:
        return None
    partial = [axis for axis, line in enumerate(lines) if not _is_whole(line, axis, shape[axis])]
    streams = [axis for axis in partial if not shape[axis].is_const]
    if len(streams) != 1 or any(lines[axis].axis not in (axis, None) for axis in partial):
        return None
    (stream,) = streams
    if lines[stream].axis is None:
        return None
    boxes: list[tuple[OutletId, int, TDim, TDim]] = []
    band = x
    for axis in partial:
        start, end = lines[axis].start, lines[axis].end
        if axis == stream:
            continue
        if not (start.is_const and end.is_const):
            return None
        if int(start) < 0:
            start, end = start + shape[axis], end + shape[axis]
        boxes.append((band, axis, start, end))
        band = node.wire(Slice(axis, start, end), [band], f"band{axis}")
    line = lines[stream]
    written = write_axis(node, band, updates, stream, strip_clamp(line.start), strip_clamp(line.end))
    if written is None:
        return None
    for outer, axis, start, end in reversed(boxes):
        parts = [(ZERO, start), (start, end), (end, shape[axis])]
        pieces = [
            written if first == start else node.wire(Slice(axis, first, last), [outer], f"beside{axis}")
            for first, last in parts
            if first != last
        ]
        written = node.wire(Concat(axis), pieces, f"joined{axis}")
    return node.name_result(written)


def write_axis(
    node: NodeContext, x: OutletId, updates: OutletId, axis: int, start: TDim, end: TDim
) -> OutletId | None:
    """Return x with the updates from a position of an axis on, up to the bound ``end``.

    None if neither bound is constant and the updates cannot be placed by position.
    """
    shape = node.graph.fact(x).shape
    filled = _fill_side(node, x, updates, axis, start, end)
    if filled is not None:
        return filled
    placed = place_updates(node, x, updates, axis, WrittenPlace(shape[axis], start, end))
    if placed is None:
        return _join(node, x, updates, axis, start, end)
    for bound, is_upper in ((end, True), (start, False)):
        inside = before_bound(node, axis, shape, bound, "before_end" if is_upper else "before_start")
        if inside is not None:
            choices = [inside, placed, x] if is_upper else [inside, x, placed]
            placed = node.wire(Elementwise("where"), choices, "up_to_end" if is_upper else "from_start")
    same = node.graph.fact(placed).shape == shape
    return placed if same else node.wire(Expand(shape), [placed], "placed")


def _fill_side(
    node: NodeContext, x: OutletId, updates: OutletId, axis: int, start: TDim, end: TDim
) -> OutletId | None:
    """Return x padded with one number in place of its first or last frames; None for other updates or places."""
    fact, number = node.graph.fact(x), uniform_value(node.graph, updates)
    size = fact.shape[axis]
    first, last = start == 0 and end.is_const, (size - start).is_const and end.prove_ge(size).yes
    if number is None or not np.issubdtype(fact.dtype, np.floating) or first == last:
        return None
    kept = Slice(axis, end, size) if first else Slice(axis, ZERO, start)
    pads = [(ZERO, ZERO)] * fact.rank
    pads[axis] = (end, ZERO) if first else (ZERO, size - start)
    padded = node.wire(Pad(tuple(pads), fill=float(number)), [node.wire(kept, [x], "kept")], "padded")
    filled = node.wire(Slice(axis, ZERO, size), [padded], "filled")
    return filled if node.graph.fact(filled).shape == fact.shape else None


def _is_whole(line: Line, axis: int, size: TDim) -> bool:
    return (
        line.start == 0 and line.end.prove_ge(size).yes and line.axis in (axis, None if size == 1 else axis)
    )


def _columns(graph: TypedGraph, indices: OutletId) -> list[Line] | None:
    """Return the line of each indexed axis; None if one is not a line."""
    node, last = graph.node(indices), graph.fact(indices).rank - 1
    parts = node.inputs if isinstance(node.op, Concat) and node.op.axis == last else [indices]
    if any(graph.fact(part).shape[last] != 1 for part in parts):
        return None
    lines = [find_line(graph, part) for part in parts]
    known_lines = [line for line in lines if line is not None]
    return known_lines if len(known_lines) == len(lines) else None


def find_line(graph: TypedGraph, outlet: OutletId) -> Line | None:
    """Return the line of a wire that is made of a range, constants, slices and axes of size 1; None for others."""
    value = known_value(graph, outlet)
    if value is not None:
        return _constant_line(value)
    node, rank = graph.node(outlet), graph.fact(outlet).rank
    match node.op:
        case Range(start, 1, length) if isinstance(start, int):
            return Line(TDim.of(start), length + start, 0)
        case Slice(axis, start, end, 1):
            inner = find_line(graph, node.inputs[0])
            if inner is None or inner.axis != axis:
                return None
            return replace(inner, start=inner.start + start, end=inner.start + end)
        case AddAxis(axis):
            inner = find_line(graph, node.inputs[0])
            if inner is None or inner.axis is None:
                return inner
            return replace(inner, axis=inner.axis + (axis <= inner.axis))
        case Expand():
            inner = find_line(graph, node.inputs[0])
            if inner is None or inner.axis is None:
                return inner
            return replace(inner, axis=inner.axis + rank - graph.fact(node.inputs[0]).rank)
        case Reshape(shape):
            inner = find_line(graph, node.inputs[0])
            longer = [axis for axis, dim in enumerate(shape) if dim != 1]
            size = (
                None if inner is None or inner.axis is None else graph.fact(node.inputs[0]).shape[inner.axis]
            )
            if inner is None or len(longer) != 1 or shape[longer[0]] != size:
                return None
            return replace(inner, axis=longer[0])
        case _:
            return None


def _constant_line(value: Array) -> Line | None:
    if not value.size or not np.issubdtype(value.dtype, np.integer):
        return None
    first, axes = int(value.flat[0]), [axis for axis in range(value.ndim) if np.diff(value, axis=axis).any()]
    if not axes:
        return Line(TDim.of(first), TDim.of(first + 1), None)
    steps = np.diff(value, axis=axes[0])
    if len(axes) > 1 or first < 0 or (steps != 1).any():
        return None
    return Line(TDim.of(first), TDim.of(first + value.shape[axes[0]]), axes[0])


def _join(
    node: NodeContext, x: OutletId, updates: OutletId, axis: int, start: TDim, end: TDim
) -> OutletId | None:
    """Return the updates joined to the frames before and after them, if both bounds are constant; else None."""
    if not start.is_const or not end.is_const or int(start) < 0:
        return None
    parts = [updates, node.wire(Slice(axis, end, node.graph.fact(x).shape[axis]), [x], "after")]
    if start != 0:
        parts.insert(0, node.wire(Slice(axis, ZERO, start), [x], "before"))
    return node.wire(Concat(axis), parts, "written")


def before_bound(
    node: NodeContext, axis: int, shape: Sequence[TDim], bound: TDim, suffix: str
) -> OutletId | None:
    """Return the mask of the positions along an axis that are below a bound, of size 1 on the others.

    bound    a constant, or the length of the axis less one
    Returns  None if the mask would be all true, or all false
    """
    size = shape[axis]
    line = tuple(size if other == axis else TDim.of(1) for other in range(len(shape)))
    if bound.is_const:
        if int(bound) <= 0:
            return None
        places = node.wire(Range(0, 1, size, I64), [], f"{suffix}_place")
        places = node.wire(Reshape(line), [places], f"{suffix}_places")
        return node.apply(
            "less", places, node.constant(np.array(int(bound), np.int64), f"{suffix}_bound"), suffix=suffix
        )
    left = size - bound
    if not left.is_const or int(left) <= 0:
        return None
    # position t is below size - left if frame t + left exists
    ones = node.wire(
        Expand(line), [node.constant(np.ones((), np.float32), f"{suffix}_one")], f"{suffix}_ones"
    )
    pads = tuple((ZERO, left if other == axis else ZERO) for other in range(len(shape)))
    exists = node.wire(Pad(pads), [ones], f"{suffix}_exists")
    later = node.wire(Slice(axis, left, size + left), [exists], f"{suffix}_later")
    return node.apply("greater", later, 0.0, suffix=suffix)
