"""Slices of padded and joined tensors: frames that the slice drops are not added at all."""

from collections.abc import Sequence
from dataclasses import replace

from pulse.declutter.rewrite import Rewrite, first_output, has_one_reader
from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.pad import Pad
from pulse.ops.shape import Transpose
from pulse.ops.slice import Slice
from pulse.patch import Patch
from pulse.typed import TypedGraph, TypedNode

ZERO = TDim.of(0)


def _crop(graph: TypedGraph, node: TypedNode, op: Slice) -> Patch | None:
    if op.step < 1:
        return None
    source = graph.node(node.inputs[0])
    match source.op:
        case Pad():
            return _crop_pad(graph, node, op, source, source.op)
        case Concat(axis) if axis == op.axis:
            return _crop_join(graph, node, op, source, source.op)
        case Transpose(perm) if has_one_reader(graph, node.inputs[0]):
            return _slice_before_transpose(graph, node, op, source, perm)
        case _:
            return None


def _slice_before_transpose(
    graph: TypedGraph, node: TypedNode, op: Slice, transpose: TypedNode, perm: Sequence[int]
) -> Patch | None:
    """Slice a padded or joined tensor before it is transposed."""
    inner, axis = graph.node(transpose.inputs[0]).op, perm[op.axis]
    if not (isinstance(inner, Concat) and inner.axis == axis) and not (
        isinstance(inner, Pad) and inner.pads[axis] != (0, 0)
    ):
        return None
    patch = Patch(graph)
    cropped = patch.wire(f"{node.name}.cropped", replace(op, axis=axis), [patch.tap(transpose.inputs[0])])[0]
    patch.shunt(first_output(node), patch.wire(node.name, transpose.op, [cropped])[0])
    return patch


def _crop_pad(graph: TypedGraph, node: TypedNode, op: Slice, source: TypedNode, pad: Pad) -> Patch | None:
    """Shorten the padding by the frames of it that the slice drops.

    Slices of a padded axis of a constant size stay: kernels read several of them in place from one padded tensor.
    """
    before, after = pad.pads[op.axis]
    size = graph.fact(source.inputs[0]).shape[op.axis]
    if size.is_const and before.is_const and after.is_const:
        return None
    cut = before if op.start.prove_ge(before).yes else op.start
    if not before.prove_ge(cut).yes:
        return None
    beyond = op.end - before - size  # frames of the padding after x that the slice keeps
    kept = ZERO if beyond.prove_le(0).yes else beyond
    if not (kept.prove_ge(0).yes and kept.prove_le(after).yes):
        kept = after
    if (cut, kept) == (ZERO, after) or (op.start.is_const and not (op.start - cut).is_const):
        return None
    pairs = tuple((before - cut, kept) if axis == op.axis else pair for axis, pair in enumerate(pad.pads))
    is_padded = any(pair != (0, 0) for pair in pairs)
    if is_padded and not has_one_reader(graph, node.inputs[0]):
        return None
    patch = Patch(graph)
    wire = patch.tap(source.inputs[0])
    if is_padded:
        wire = patch.wire(f"{node.name}.padded", replace(pad, pads=pairs), [wire])[0]
    return _shunt_if_equal(graph, node, patch, replace(op, start=op.start - cut, end=op.end - cut), wire)


def _crop_join(
    graph: TypedGraph, node: TypedNode, op: Slice, source: TypedNode, join: Concat
) -> Patch | None:
    """Leave out the first and the last parts of a join of which the slice keeps no frame."""
    parts = list(source.inputs)
    sizes = [graph.fact(part).shape[op.axis] for part in parts]
    total, start, end, dropped = sum(sizes, ZERO), op.start, op.end, ZERO
    while len(parts) > 1 and start.prove_ge(sizes[0]).yes:
        start, end = start - sizes[0], end - sizes[0]
        dropped += TDim.of(sizes[0].bounds()[1] or 0)
        parts, sizes = parts[1:], sizes[1:]
    while len(parts) > 1 and end.prove_le(sum(sizes[:-1], ZERO)).yes:
        parts, sizes = parts[:-1], sizes[:-1]
    if len(parts) == len(source.inputs) or not (len(parts) == 1 or has_one_reader(graph, node.inputs[0])):
        return None
    if op.start.is_const and not start.is_const:
        # parts such as the last frame, min(1, T): if the rest is as long as the slice, it begins after all their frames
        start, end = op.start - dropped, sum(sizes, ZERO)
        if not (op.end.prove_ge(total).yes and start.prove_ge(0).yes):
            return None
    patch = Patch(graph)
    wires = [patch.tap(part) for part in parts]
    wire = wires[0] if len(parts) == 1 else patch.wire(f"{node.name}.joined", join, wires)[0]
    return _shunt_if_equal(graph, node, patch, replace(op, start=start, end=end), wire)


def _shunt_if_equal(
    graph: TypedGraph, node: TypedNode, patch: Patch, op: Slice, wire: OutletId
) -> Patch | None:
    cropped = patch.wire(node.name, op, [wire])[0]
    if not patch.graph.fact(cropped).agrees(graph.fact(first_output(node))):
        return None
    patch.shunt(first_output(node), cropped)
    return patch


CROPS = (
    Rewrite(
        "crop",
        "frames of a padding or of a part of a join that a slice drops need not be added",
        _crop,
        (Slice,),
    ),
)
