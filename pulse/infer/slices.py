"""Slices, splits and stacks, as the operators of several formats wire them."""

from collections.abc import Mapping, Sequence

from pulse.dim import TDim
from pulse.errors import DimError
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.ops.concat import Concat
from pulse.ops.dims import simplest_max, simplest_min, unify
from pulse.ops.shape import AddAxis, RemoveAxis
from pulse.ops.slice import Slice
from pulse.support.wording import count_of

OPEN_BOUND = 2**31 - 1
"""A constant bound from here on, or up to its negative, means "as far as possible"."""

MAX_SLICE_ENTRIES = 64
"""Maximum number of entries of a strided slice: axes of a tensor, and new ones; more are refused."""


def _wrap_bound(node: NodeContext, bound: TDim, size: TDim) -> TDim:
    """Return a bound that may count from the end, counted from the front.

    If its sign depends on a length, it is assumed to be positive, which is checked when the model runs.
    """
    sign = bound.prove_ge(0)
    if sign.no:
        return bound + size
    if sign.unknown:
        try:
            node.scope.assume(f"{bound} >= 0")
        except DimError as error:
            raise node.error(f"the bound {bound} has no clear sign: {error}") from error
    return bound


def _clamp_bound(node: NodeContext, bound: TDim, size: TDim, low: int, high: TDim) -> TDim:
    """Return a bound of a slice, clamped to ``low .. high``."""
    if bound.is_const and int(bound) >= OPEN_BOUND:
        return high
    if bound.is_const and int(bound) <= -OPEN_BOUND:
        return TDim.of(low)
    return simplest_max(simplest_min(_wrap_bound(node, bound, size), high), TDim.of(low))


def _wrap_forward_bound(node: NodeContext, bound: TDim, size: TDim) -> TDim:
    """Return a bound of a slice with a positive step, counted from the front; the op clamps it to the size."""
    if bound.is_const and int(bound) >= OPEN_BOUND:
        return size
    if bound.is_const and int(bound) <= -OPEN_BOUND:
        return TDim.of(0)
    return simplest_max(_wrap_bound(node, bound, size), TDim.of(0))


def slice_op(node: NodeContext, axis: int, size: TDim, start: TDim, end: TDim, step: int) -> Slice | None:
    """Return the slice of one axis as ONNX defines it; None if it takes everything.

    Raises LoadError: the step is 0, or a bound has no clear sign.
    """
    if step == 0:
        raise node.error("a step is 0; it must be another integer")
    if step > 0:
        first, last = _wrap_forward_bound(node, start, size), _wrap_forward_bound(node, end, size)
        everything = step == 1 and first == 0 and last.prove_ge(size).yes
        return None if everything else Slice(axis, first, last, step)
    first = _clamp_bound(node, start, size, 0, size - 1)
    last = simplest_min(_clamp_bound(node, end, size, -1, size - 1), first)
    return Slice(axis, first, last, step)


def wire_slice(node: NodeContext, x: OutletId, begins: Sequence[TDim], sizes: Sequence[TDim]) -> OutletId:
    """Take this many entries from ``begin`` on along each of the first axes; a size of -1 is the rest of the axis.

    Raises LoadError: an axis does not have the entries, or there are too few axes
    """
    shape = node.graph.fact(x).shape
    if len(begins) > len(shape) or len(begins) != len(sizes):
        raise node.error(
            f"{len(begins)} begins and {count_of(len(sizes), 'size')} for {count_of(len(shape), 'axis', 'axes')}"
        )
    for axis, (begin, size, whole) in enumerate(zip(begins, sizes, shape)):
        end = whole if size == -1 else begin + size
        if (begin.is_const and int(begin) < 0) or (end.is_const and whole.is_const and int(end) > int(whole)):
            raise node.error(f"entries {begin} to {end} of axis {axis}, which has {whole}")
        if begin != 0 or end != whole:
            x = node.wire(Slice(axis, begin, end), [x], f"axis{axis}")
    return node.name_result(x)


def wire_reversed(node: NodeContext, x: OutletId, axes: Sequence[int]) -> OutletId:
    """Reverse axes of a wire."""
    for axis in axes:
        last = node.graph.fact(x).shape[axis] - 1
        x = node.wire(Slice(axis, last, TDim.of(-1), -1), [x], f"axis{axis}")
    return node.name_result(x)


def wire_strided_slice(node: NodeContext, x: OutletId, rank: int, masks: Mapping[str, int]) -> OutletId:
    """Slice each axis of a wire; inputs 1, 2 and 3 have the bounds and the step of each entry.

    rank    number of axes of x that have entries
    masks   begin, end, ellipsis, new_axis, shrink_axis: bit i says that entry i omits a bound, or is another kind
    Raises  LoadError: the entries do not fit the axes
    """
    begins, ends = node.dims(1, "begin"), node.dims(2, "end")
    steps, count = node.integers(3, "strides"), len(begins)
    if not count == len(ends) == len(steps) or count > MAX_SLICE_ENTRIES:
        raise node.error(f"{count} begins, {len(ends)} ends and {len(steps)} strides")
    kinds = [_entry_kind(masks, index) for index in range(count)]
    slices = count - kinds.count("ellipsis") - kinds.count("new_axis")
    if slices > rank or kinds.count("ellipsis") > 1:
        raise node.error(
            f"{count_of(count, 'entry', 'entries')}, {slices} of them slices, for {node.graph.fact(x)}"
        )
    axis, removed = 0, list[int]()
    for index, (kind, begin, end, step) in enumerate(zip(kinds, begins, ends, steps)):
        if kind == "ellipsis":
            axis += rank - slices
            continue
        if kind == "new_axis":
            x = node.wire(AddAxis(axis), [x], f"new{axis}")
        elif kind == "shrink_axis":
            x = _wire_entry(node, x, axis, begin)
            removed.append(axis)
        else:
            begin = TDim.of(-OPEN_BOUND if step > 0 else OPEN_BOUND) if masks["begin"] >> index & 1 else begin
            end = TDim.of(OPEN_BOUND if step > 0 else -OPEN_BOUND) if masks["end"] >> index & 1 else end
            op = slice_op(node, axis, node.graph.fact(x).shape[axis], begin, end, step)
            x = x if op is None else node.wire(op, [x], f"cut{axis}")
        axis += 1
    for axis in reversed(removed):
        x = node.wire(RemoveAxis(axis), [x], f"single{axis}")
    return node.name_result(x)


def _entry_kind(masks: Mapping[str, int], index: int) -> str:
    kinds = ("ellipsis", "new_axis", "shrink_axis")
    return next((kind for kind in kinds if masks[kind] >> index & 1), "slice")


def _wire_entry(node: NodeContext, x: OutletId, axis: int, index: TDim) -> OutletId:
    """Wire one entry of an axis, which stays with size 1. Raises LoadError: the axis does not have it."""
    size = node.graph.fact(x).shape[axis]
    if index.is_const and size.is_const and not -int(size) <= int(index) < int(size):
        raise node.error(f"entry {index} of axis {axis}, which has {size}")
    start = index + size if index.prove_ge(0).no else index
    return node.wire(Slice(axis, start, start + 1), [x], f"cut{axis}")


def part_sizes(node: NodeContext, whole: TDim) -> list[TDim]:
    """Return the sizes of the parts of an axis, from input 1; -1 is what the others leave of the whole axis.

    Raises FactError: they do not add up to it
    """
    sizes = list(node.dims(1, "sizes"))
    rest = whole - sum((size for size in sizes if size != -1), TDim.of(0))
    sizes = [rest if size == -1 else size for size in sizes]
    unify(sum(sizes, TDim.of(0)), whole, f"{node.wire_name} ({node.op_type}): the parts of the axis")
    return sizes


def split_parts(
    node: NodeContext, wires: Sequence[OutletId], axis: int, sizes: Sequence[TDim]
) -> list[OutletId]:
    """Cut an axis into one part per output; each part is cut from its own wire of the whole tensor."""
    parts: list[OutletId] = []
    start = TDim.of(0)
    for name, x, size in zip(node.outputs, wires, sizes):
        is_whole = start == 0 and size == node.graph.fact(x).shape[axis]
        part = node.with_name(name) if name else node
        parts.append(x if is_whole else part.wire(Slice(axis, start, start + size), [x]))
        start = start + size
    return parts


def unstack(node: NodeContext, wires: Sequence[OutletId], axis: int) -> list[OutletId]:
    """Return one entry of an axis per output, without the axis; each is cut from its own wire of the whole tensor."""
    entries: list[OutletId] = []
    for index, (name, x) in enumerate(zip(node.outputs, wires)):
        if node.graph.fact(x).shape[axis] != 1:
            x = node.wire(Slice(axis, TDim.of(index), TDim.of(index + 1)), [x], f"row{index}")
        entries.append((node.with_name(name) if name else node).wire(RemoveAxis(axis), [x]))
    return entries


def stack(node: NodeContext, wires: Sequence[OutletId], axis: int) -> OutletId:
    """Stack wires along a new axis."""
    rows = [node.wire(AddAxis(axis), [x], f"row{index}") for index, x in enumerate(wires)]
    return node.name_result(rows[0] if len(rows) == 1 else node.wire(Concat(axis), rows))
