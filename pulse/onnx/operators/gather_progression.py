"""Indices that are evenly spaced: looking up entries by them is slicing."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pulse.dim import TDim
from pulse.dim.atoms import Max
from pulse.facts import Array, Shape, is_symbolic
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Elementwise
from pulse.ops.pad import Pad
from pulse.ops.shape import AddAxis, RemoveAxis, Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.ops.slice_frames import Frames
from pulse.ops.time_position import Range
from pulse.support.record import record
from pulse.typed import TypedGraph, known_value

MAX_SLICES = 64
"""More rows of indices are not cut into slices: they are looked up."""
MIN_FRAME_WIDTH = 9
"""From this many neighbouring starts on, the lookup becomes one framing; fewer become slices, each with a delay."""
MIN_ROW_ENTRIES = 8
"""Constant rows of fewer entries are looked up one by one."""


@record(eq=False)
class Progression:
    """A tensor ``starts[i...] + j*step`` with j < length along one axis, on which starts has size 1.

    starts, axis, step, length  as in the formula
    low, high                   what lower and higher numbers are replaced by; None: nothing
    """

    starts: Array
    axis: int
    step: int
    length: TDim
    low: TDim | None = None
    high: TDim | None = None

    @property
    def is_limited(self) -> bool:
        """Return whether numbers may be replaced."""
        return self.low is not None or self.high is not None


def progression(graph: TypedGraph, outlet: OutletId) -> Progression | None:
    """Return the progression of a wire without limits; None for other wires."""
    spaced = limited_progression(graph, outlet)
    return None if spaced is None or spaced.is_limited else spaced


def limited_progression(graph: TypedGraph, outlet: OutletId) -> Progression | None:
    """Return the progression of a wire of integers made of a range, constants, and axes of size 1; None for others."""
    value = known_value(graph, outlet)
    if value is not None:
        return _constant(value)
    node = graph.node(outlet)
    op = node.op
    if isinstance(op, Range) and isinstance(op.start, int) and isinstance(op.step, int):
        return Progression(np.array([op.start], np.int64), 0, op.step, op.length)
    if isinstance(op, AddAxis | RemoveAxis | Reshape):
        inner = limited_progression(graph, node.inputs[0])
        return None if inner is None else _move_axes(inner, op, graph.fact(outlet).shape)
    if isinstance(op, Elementwise) and op.kind in ("add", "sub", "mul", "max", "min"):
        for operand, other in (node.inputs, node.inputs[::-1]):
            value, inner = graph.fact(other).value, limited_progression(graph, operand)
            if value is not None and inner is not None:
                return _compute(op.kind, inner, value, operand == node.inputs[0])
    if isinstance(op, Elementwise) and op.kind == "where":
        return _all_indices(graph, *node.inputs)
    return None


def _all_indices(
    graph: TypedGraph, condition: OutletId, indices: OutletId, other: OutletId
) -> Progression | None:
    """Return 0, 1 ... n - 1 of ``where(n > 1, [0, 1 ... n - 1], 0)``, as tf.vectorized_map writes all indices."""
    inner, zero, test = progression(graph, indices), known_value(graph, other), graph.node(condition)
    if inner is None or inner.step != 1 or inner.starts.any() or zero is None or zero.any():
        return None
    if not isinstance(test.op, Elementwise) or test.op.kind != "greater":
        return None
    values = [graph.fact(outlet).value for outlet in test.inputs]
    sizes = [value.reshape(()).item() for value in values if value is not None and value.size == 1]
    return inner if sizes == [inner.length, 1] else None


def _move_axes(inner: Progression, op: AddAxis | RemoveAxis | Reshape, shape: Shape) -> Progression | None:
    if isinstance(op, Reshape):
        return _reshape(inner, shape)
    if isinstance(op, AddAxis):
        return replace(
            inner, starts=np.expand_dims(inner.starts, op.axis), axis=inner.axis + (op.axis <= inner.axis)
        )
    if op.axis == inner.axis:
        return None
    return replace(inner, starts=inner.starts.squeeze(op.axis), axis=inner.axis - (op.axis < inner.axis))


def _compute(kind: str, inner: Progression, value: Array, is_first: bool) -> Progression | None:
    """Return a function of a progression, its first or its second operand, and a constant."""
    if kind in ("max", "min"):
        side = "low" if kind == "max" else "high"
        if value.size != 1 or getattr(inner, side) is not None:
            return None
        return replace(inner, **{side: TDim.of(value.reshape(()).item())})
    if inner.is_limited or is_symbolic(value) or (kind == "sub" and not is_first):
        return None
    return _scale(inner, value) if kind == "mul" else _shift(inner, -value if kind == "sub" else value)


def _constant(value: Array) -> Progression | None:
    """Return rows of a table that each go up by the same steps."""
    if (
        value.ndim == 0
        or not value.size
        or value.shape[-1] < MIN_ROW_ENTRIES
        or not np.issubdtype(value.dtype, np.integer)
    ):
        return None
    steps = np.diff(value, axis=-1)
    if (steps != steps.flat[0]).any():
        return None
    return Progression(value[..., :1], value.ndim - 1, int(steps.flat[0]), TDim.of(value.shape[-1]))


def _reshape(inner: Progression, shape: Shape) -> Progression | None:
    """Return one row in a shape whose other axes are 1."""
    rows = [axis for axis, dim in enumerate(shape) if dim != 1]
    if inner.starts.size != 1 or len(rows) != 1 or shape[rows[0]] != inner.length:
        return None
    return replace(inner, starts=inner.starts.reshape((1,) * len(shape)), axis=rows[0])


def _shift(inner: Progression, value: Array) -> Progression | None:
    starts = inner.starts + value
    axis = inner.axis + starts.ndim - inner.starts.ndim
    return replace(inner, starts=starts, axis=axis) if starts.shape[axis] == 1 else None


def _scale(inner: Progression, value: Array) -> Progression | None:
    if value.size != 1:
        return None
    factor = int(value.reshape(()))
    return Progression(
        inner.starts.reshape((1,) * (value.ndim - inner.starts.ndim) + inner.starts.shape) * factor,
        inner.axis + max(0, value.ndim - inner.starts.ndim),
        inner.step * factor,
        inner.length,
    )


def strip_clamp(length: TDim) -> TDim:
    """Return the e of max(0, e): a slice of that many frames is empty if e is negative."""
    if length.const or len(length.terms) != 1:
        return length
    atoms, factor = length.terms[0]
    if factor != 1 or len(atoms) != 1 or not isinstance(atoms[0], Max) or len(atoms[0].options) != 2:
        return length
    low, high = sorted(atoms[0].options, key=lambda option: option != 0)
    return high if low == 0 else length


def _cut_frames(
    node: NodeContext, x: OutletId, axis: int, indices: Progression, reach: TDim
) -> OutletId | None:
    """Return overlapping frames [..., length, starts, ...] in the order of the indices; None if starts are apart."""
    width, first = indices.starts.size, int(indices.starts.flat[0])
    if max(indices.starts.shape) < width or (np.diff(indices.starts.ravel()) != 1).any():
        return None
    width_axis = indices.starts.shape.index(width)
    part = node.wire(Slice(axis, TDim.of(first), reach + first + width), [x], "part")
    frames = node.wire(Frames(axis, width, indices.step), [part], "frames")
    fact = node.graph.fact(frames)
    if width_axis < indices.axis:
        order = [*range(axis), axis + 1, axis, *range(axis + 2, fact.rank)]
        frames = node.wire(Transpose(tuple(order)), [frames], "frames_last")
    for other in range(indices.starts.ndim):
        if other not in (width_axis, indices.axis):
            frames = node.wire(AddAxis(axis + other), [frames], f"wide{other}")
    return frames


def is_count(graph: TypedGraph, x: OutletId, indices: Progression) -> bool:
    """Return whether a wire is 0, 1, 2, … as far as these indices reach, so that the indices look up themselves."""
    op = graph.node(x).op
    return isinstance(op, Range) and (op.start, op.step) == (0, 1) and _is_inside(indices, op.length)


def _is_inside(indices: Progression, size: TDim) -> bool:
    last = (strip_clamp(indices.length) - 1) * indices.step + int(indices.starts.max())
    is_bounded = indices.step > 0 and bool(indices.starts.min() >= 0) and size.prove_ge(last + 1).yes
    return is_bounded and not indices.is_limited


def _repeat_ends(
    node: NodeContext, x: OutletId, axis: int, indices: Progression
) -> tuple[OutletId, Progression] | None:
    """Return x with its first and last entry repeated as far as limited indices reach beyond it, and their places.

    None if the limits are not the ends of x.
    """
    shape = node.graph.fact(x).shape
    last = shape[axis] - 1
    over = (strip_clamp(indices.length) - 1) * indices.step + int(indices.starts.max()) - last
    before = max(0, -int(indices.starts.min()))
    starts_at_end = indices.low is None or indices.low == 0
    ends_at_end = indices.high is None or indices.high == last
    if not (starts_at_end and ends_at_end and (over.is_const or over.prove_le(0).yes)):
        return None
    after = max(0, int(over)) if over.is_const else 0
    pads = [
        (TDim.of(before), TDim.of(after)) if place == axis else (TDim.of(0), TDim.of(0))
        for place in range(len(shape))
    ]
    if (before and indices.low is None) or (after and indices.high is None):
        return None
    padded = node.wire(Pad(tuple(pads), "edge"), [x], "repeated")
    return padded, replace(indices, starts=indices.starts + before, low=None, high=None)


def gather_by_slices(node: NodeContext, x: OutletId, axis: int, indices: Progression) -> OutletId | None:
    """Return the entries of x at the indices, by slices; None if these may leave the tensor or are too many.

    A lookup of many neighbouring starts becomes one framing.
    """
    min_width = MIN_FRAME_WIDTH
    if indices.is_limited:
        repeated = _repeat_ends(node, x, axis, indices)
        if repeated is None:
            return None
        (x, indices), min_width = repeated, 2  # each slice would wait for the frames beyond both ends
    size, reach = node.graph.fact(x).shape[axis], (strip_clamp(indices.length) - 1) * indices.step
    if not _is_inside(indices, size):
        return None
    if indices.starts.size >= min_width:
        frames = _cut_frames(node, x, axis, indices, reach)
        if frames is not None:
            return frames
    if indices.starts.size > MAX_SLICES:
        return None

    def part(place: Sequence[int], final: bool) -> OutletId:
        depth = len(place)
        if depth == indices.starts.ndim:
            start = int(indices.starts[tuple(place)])
            op = Slice(axis, TDim.of(start), reach + start + 1, indices.step)
            return node.wire(op, [x], "" if final else f"slice{start}")
        if depth == indices.axis:
            return part([*place, 0], final)
        count, stack_axis = indices.starts.shape[depth], axis + (indices.axis < depth)
        label = "_".join(map(str, place))
        rows = [
            node.wire(
                AddAxis(stack_axis),
                [part([*place, i], False)],
                "" if final and count == 1 else f"row{label}_{i}",
            )
            for i in range(count)
        ]
        return (
            rows[0] if count == 1 else node.wire(Concat(stack_axis), rows, "" if final else f"stack{label}")
        )

    return part([], True)
