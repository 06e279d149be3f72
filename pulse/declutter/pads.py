"""Pads: made from uniform parts of a join, and taken by the next window op as its own."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pulse.declutter.conditions import uniform_value
from pulse.declutter.rewrite import Rewrite, first_output, has_one_reader
from pulse.dim import TDim, dim_max, dim_min
from pulse.dim.atoms import Min
from pulse.facts import Shape, is_symbolic, volume
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.conv import NO_PAD, Conv, Pads
from pulse.ops.dims import require_at_least
from pulse.ops.elementwise import Elementwise
from pulse.ops.gather import Gather
from pulse.ops.op import Op, Pointwise
from pulse.ops.pad import Pad
from pulse.ops.pool import Pool
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose, with_dim
from pulse.ops.slice import Slice
from pulse.patch import Patch, replace_op
from pulse.support.record import record
from pulse.typed import TypedGraph, TypedNode


def _pad_before(graph: TypedGraph, node: TypedNode, fill: float) -> tuple[TypedNode, Pads] | None:
    """Return the pad that feeds only this node and its spatial pads, if they hold ``fill``."""
    pad = graph.node(node.inputs[0])
    if not isinstance(pad.op, Pad) or pad.op.mode != "constant" or pad.op.fill != fill:
        return None
    if any(pair != (0, 0) for pair in pad.op.pads[:2]) or not has_one_reader(graph, node.inputs[0]):
        return None
    return pad, pad.op.pads[2:]


def _merge_pad(graph: TypedGraph, node: TypedNode, op: Conv | Pool) -> Patch | None:
    """Make the pad before a window op, if it holds what the op pads with, a part of the op."""
    pad_before = _pad_before(graph, node, 0.0 if isinstance(op, Conv) else -np.inf)
    if pad_before is None or (isinstance(op, Pool) and op.kind != "max"):
        return None
    pad, outer = pad_before
    pads = tuple((a + c, b + d) for (a, b), (c, d) in zip(outer, op.pads))
    inputs = [pad.inputs[0], *node.inputs[1:]]
    return replace_op(graph, first_output(node), node.name, replace(op, pads=pads), inputs)


def _move_pad_later(graph: TypedGraph, node: TypedNode, _: Op) -> Patch | None:
    """Move the padding of one axis after an op that does not change this axis."""
    slots = [slot for slot, outlet in enumerate(node.inputs) if isinstance(graph.node(outlet).op, Pad)]
    if len(slots) != 1 or len(node.outputs) > 1:
        return None
    (slot,) = slots
    pad = graph.node(node.inputs[slot])
    if not isinstance(pad.op, Pad) or not has_one_reader(graph, node.inputs[slot]):
        return None
    padded_axes = [axis for axis, pair in enumerate(pad.op.pads) if pair != (0, 0)]
    if len(padded_axes) != 1:
        return None
    op_and_axis = _find_padded_op(graph, node, pad, slot, padded_axes[0])
    if op_and_axis is None:
        return None
    op, axis = op_and_axis
    patch = Patch(graph)
    sources = [pad.inputs[0] if index == slot else outlet for index, outlet in enumerate(node.inputs)]
    inner = patch.wire(f"{node.name}.unpadded", op, [patch.tap(outlet) for outlet in sources])[0]
    rank = graph.fact(first_output(node)).rank
    pads = tuple(
        pad.op.pads[padded_axes[0]] if padded_axis == axis else (TDim.of(0), TDim.of(0))
        for padded_axis in range(rank)
    )
    patch.shunt(first_output(node), patch.wire(node.name, replace(pad.op, pads=pads), [inner])[0])
    return patch


def _find_padded_op(
    graph: TypedGraph, node: TypedNode, pad: TypedNode, slot: int, axis: int
) -> tuple[Op, int] | None:
    """Return the op before the padding, and its axis for the padded one; None if it changes this axis."""
    fact, out = graph.fact(node.inputs[slot]), graph.fact(first_output(node))
    match node.op:
        case Transpose() | AddAxis() | RemoveAxis():
            relation = node.op.relation([fact], [axis])
            return (node.op, relation.axes[0]) if isinstance(relation, Pointwise) else None
        case Gather(op_axis) if slot == 0 and op_axis != axis:
            indices = graph.fact(node.inputs[1])
            if indices.value is not None:
                return node.op, axis if axis < op_axis else axis + indices.rank - 1
            return None
        case Reshape():
            index = next((i for i in range(out.rank) if _is_kept(fact.shape, axis, out.shape, i)), None)
            if index is None:
                return None
            size = graph.fact(pad.inputs[0]).shape[axis]
            return Reshape((*out.shape[:index], size, *out.shape[index + 1 :])), index
        case Elementwise() if isinstance(pad.op, Pad) and pad.op.mode in ("edge", "reflect"):
            others = [graph.fact(outlet) for index, outlet in enumerate(node.inputs) if index != slot]
            from_end = axis - fact.rank
            alone = all(other.rank < -from_end or other.shape[from_end] == 1 for other in others)
            return (node.op, axis) if fact.rank == out.rank and alone else None
        case _:
            return None


def _is_kept(before: Shape, axis: int, after: Shape, index: int) -> bool:
    """Return whether a reshape keeps an axis, as axis ``index``."""
    return (
        before[axis] == after[index]
        and volume(before[:axis]) == volume(after[:index])
        and volume(before[axis + 1 :]) == volume(after[index + 1 :])
    )


def _pad_with_joined_fill(graph: TypedGraph, node: TypedNode, op: Concat) -> Patch | None:
    """Make a part after others that holds one number, and whose length depends on the stream, a padding."""
    fills = [_joined_fill(graph, outlet) for outlet in node.inputs]
    sizes = [graph.fact(outlet).shape[op.axis] for outlet in node.inputs]
    first = next((i for i in range(1, len(fills)) if fills[i] is not None and not sizes[i].is_const), 0)
    if all(graph.fact(outlet).value is not None for outlet in node.inputs[:first]):
        return None
    fill = fills[first]
    assert fill is not None
    last = next((i for i in range(first, len(fills)) if fills[i] != fill), len(fills))
    patch = Patch(graph)
    parts = [patch.tap(outlet) for outlet in node.inputs]
    before = patch.wire(f"{node.name}.before", op, parts[:first])[0] if first > 1 else parts[0]
    pads = [NO_PAD] * graph.fact(first_output(node)).rank
    pads[op.axis] = (TDim.of(0), sum(sizes[first:last], TDim.of(0)))
    pad = Pad(tuple(pads), fill=fill)
    padded = patch.wire(node.name if last == len(parts) else f"{node.name}.padded", pad, [before])[0]
    if last < len(parts):
        padded = patch.wire(node.name, op, [padded, *parts[last:]])[0]
    patch.shunt(first_output(node), padded)
    return patch


def _joined_fill(graph: TypedGraph, outlet: OutletId) -> float | None:
    """Return the number that a part holds everywhere; None if it is unknown, -0.0, or not a float."""
    fill = uniform_value(graph, outlet)
    if fill is None or is_symbolic(fill) or float(fill) != fill or (fill == 0 and np.signbit(float(fill))):
        return None
    return float(fill)


def _shift_by_joined_fill(graph: TypedGraph, node: TypedNode, op: Concat) -> Patch | None:
    """Make a part of one number before all frames but the last ones, ``min(k, n)`` long for n frames, a padding.

    That is how the size of ``zeros_like(x[:k])`` is written before ``x[:-k]``, if x may be shorter than k.
    """
    if len(node.inputs) != 2:
        return None
    part, cut = node.inputs[0], graph.node(node.inputs[1])
    if not isinstance(cut.op, Slice) or (cut.op.axis, cut.op.start, cut.op.step) != (op.axis, 0, 1):
        return None
    before, size = (graph.fact(outlet).shape[op.axis] for outlet in (part, cut.inputs[0]))
    smallest = before.only_atom
    options = smallest.options if isinstance(smallest, Min) else ()
    count = next((option for option in options if option.is_const), None)
    if count is None or before != dim_min(size, count) or before + cut.op.end != size:
        return None
    fill = _joined_fill(graph, part)
    if fill is None:
        return None
    patch = Patch(graph)
    pads = [NO_PAD] * graph.fact(first_output(node)).rank
    pads[op.axis] = (count, TDim.of(0))
    padded = patch.wire(f"{node.name}.padded", Pad(tuple(pads), fill=fill), [patch.tap(cut.inputs[0])])
    patch.shunt(first_output(node), patch.wire(node.name, Slice(op.axis, TDim.of(0), size), padded)[0])
    return patch


def _pad_with_joined_edges(graph: TypedGraph, node: TypedNode, op: Concat) -> Patch | None:
    """Make copies of the first frame before a stream, and of the last one after it, a padding."""
    for slot, source in enumerate(node.inputs):
        before = [_edge_copies(graph, outlet, source, op.axis, 0) for outlet in node.inputs[:slot]]
        after = [_edge_copies(graph, outlet, source, op.axis, -1) for outlet in node.inputs[slot + 1 :]]
        copies = [part for part in (*before, *after) if part is not None]
        if len(copies) < len(node.inputs) - 1:
            continue
        for outlet in {source, *(part.owner for part in copies)}:
            require_at_least(graph.fact(outlet).shape[op.axis], TDim.of(1), "the repeated frame")
        pads = [NO_PAD] * graph.fact(source).rank
        counts = [part.count for part in copies]
        pads[op.axis] = sum(counts[:slot], TDim.of(0)), sum(counts[slot:], TDim.of(0))
        return replace_op(graph, first_output(node), node.name, Pad(tuple(pads), "edge"), [source])
    return None


@record
class _EdgeCopies:
    """Copies of the first or the last frame of a wire.

    count  how many
    owner  the wire that the frame is sliced from: that wire, or one that it pads
    """

    count: TDim
    owner: OutletId


def _edge_copies(
    graph: TypedGraph, outlet: OutletId, source: OutletId, axis: int, place: int
) -> _EdgeCopies | None:
    """Return the copies of the first (0) or last (-1) frame of a wire that another wire holds; None for others."""
    frame_shape = with_dim(graph.fact(source).shape, axis, 1)
    count, node = TDim.of(1), graph.node(outlet)
    if isinstance(node.op, Expand | Tile):
        count = (node.op.shape if isinstance(node.op, Expand) else node.op.repeats)[axis - len(frame_shape)]
        if with_dim(graph.fact(outlet).shape, axis, 1) != frame_shape:
            return None
        node = graph.node(node.inputs[0])
    if not isinstance(node.op, Slice) or node.op.axis != axis:
        return None
    for owner in _wires_with_equal_end(graph, source, axis, place):
        size = graph.fact(owner).shape[axis]
        begin, end = (size - 1, size) if place else (TDim.of(0), TDim.of(1))
        if node.inputs[0] == owner and node.op.start in (begin, dim_max(0, begin)) and node.op.end == end:
            return _EdgeCopies(count, owner)
    return None


def _wires_with_equal_end(graph: TypedGraph, source: OutletId, axis: int, place: int) -> Iterator[OutletId]:
    """Yield the wires whose first (0) or last (-1) frame is that of a wire: itself, and what it pads."""
    yield source
    node = graph.node(source)
    while isinstance(node.op, Pad) and (node.op.mode == "edge" or node.op.pads[axis][place] == 0):
        yield node.inputs[0]
        node = graph.node(node.inputs[0])


PADS = (
    Rewrite(
        "pad_with_joined_edges",
        "copies of the first frame before a stream, and of the last one after it, are its padding",
        _pad_with_joined_edges,
        (Concat,),
    ),
    Rewrite(
        "shift_by_joined_fill",
        "one number for each of the first frames, joined to the frames before the last ones, is a shift",
        _shift_by_joined_fill,
        (Concat,),
    ),
    Rewrite(
        "pad_with_joined_fill",
        "a part of one number after others is a padding, which may be as long as the stream requires",
        _pad_with_joined_fill,
        (Concat,),
    ),
    Rewrite(
        "pad_later",
        "an op that does not change an axis may run before its padding, which then reaches the window that needs it",
        _move_pad_later,
        (Transpose, AddAxis, RemoveAxis, Reshape, Gather, Elementwise),
    ),
    Rewrite(
        "pad_into_window",
        "a convolution pads with zeros too, a maximum with -inf, which never is the largest",
        _merge_pad,
        (Conv, Pool),
    ),
)
