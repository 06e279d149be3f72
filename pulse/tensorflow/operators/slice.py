"""Slices and splits."""

from collections.abc import Mapping, Sequence

from pulse.dim import TDim
from pulse.facts import Shape
from pulse.graph import OutletId
from pulse.onnx.operators.slice import FAR_END, slice_each, slice_op
from pulse.ops.concat import Concat
from pulse.ops.op import unify
from pulse.ops.shape import AddAxis, RemoveAxis
from pulse.ops.slice import Slice
from pulse.tensorflow.context import TensorflowNode
from pulse.tensorflow.operators.control_lists import ListItem
from pulse.tensorflow.registry import tensorflow_op

MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")

MAX_ENTRIES = 64
"""The most entries of a list of slices: axes of a tensor, and new ones."""


@tensorflow_op("Slice")
def slice_(node: TensorflowNode) -> OutletId:
    """Along each axis ``size`` entries from ``begin`` on; a size of -1 is the rest of the axis."""
    shape = node.fact(0).shape
    begins, sizes = node.dims(1, "begin"), node.dims(2, "size")
    if len(begins) > len(shape) or len(begins) != len(sizes):
        raise node.error(f"{len(begins)} begins and {len(sizes)} sizes for {node.fact(0)}")
    ops: list[Slice] = []
    for axis, (begin, size) in enumerate(zip(begins, sizes)):
        end = shape[axis] if size == -1 else begin + size
        if not (begin == 0 and end == shape[axis]):
            ops.append(Slice(axis, begin, end))
    return slice_each(node, ops)


@tensorflow_op("StridedSlice")
def strided_slice(node: TensorflowNode) -> OutletId:
    """Slice each axis; the masks omit bounds, add axes and remove axes."""
    x = node.input(0)
    shape = node.fact(0).shape
    rank = len(shape) - node.is_complex()
    masks = {name: node.integer(f"{name}_mask", 0) for name in MASKS}
    if node.value(1) is None:
        return _by_index(node, masks)
    begins, ends, steps = node.dims(1, "begin"), node.dims(2, "end"), node.integers(3, "strides")
    count = len(begins)
    if not count == len(ends) == len(steps) or count > MAX_ENTRIES:
        raise node.error(f"{len(begins)} begins, {len(ends)} ends and {len(steps)} strides")

    def has(name: str, bit: int) -> bool:
        return bool(masks[name] >> bit & 1)

    slices = sum(not has("new_axis", index) and not has("ellipsis", index) for index in range(count))
    if slices > rank:
        raise node.error(f"{slices} slices for {node.fact(0)}")
    axis, new, shrunk, ops = 0, list[int](), list[int](), list[Slice]()
    out_axis = 0
    for index in range(count):
        if has("ellipsis", index):
            axis, out_axis = axis + rank - slices, out_axis + rank - slices
        elif has("new_axis", index):
            new.append(out_axis)
            out_axis += 1
        else:
            size = shape[axis]
            if has("shrink_axis", index):
                first = begins[index] + size if begins[index].prove_ge(0).no else begins[index]
                ops.append(Slice(axis, first, first + 1))
                shrunk.append(axis)
            else:
                step = steps[index]
                start = _open_bound(step > 0) if has("begin", index) else begins[index]
                end = _open_bound(step < 0) if has("end", index) else ends[index]
                op = slice_op(node, axis, size, start, end, step)
                ops += [] if op is None else [op]
                out_axis += 1
            axis += 1
    for op in ops:
        x = node.wire(op, [x], f"cut{op.axis}" if shrunk or new or op is not ops[-1] else "")
    for axis in reversed(shrunk):
        x = node.wire(RemoveAxis(axis), [x], "" if axis == shrunk[0] and not new else f"single{axis}")
    for axis in new:
        x = node.wire(AddAxis(axis), [x], "" if axis == new[-1] else f"new{axis}")
    return x


def _by_index(node: TensorflowNode, masks: Mapping[str, int]) -> OutletId:
    """Return ``x[:, i]`` with an index that is computed while running: one element of one axis."""
    graph = node.graph
    producer = graph.node(node.input(1))
    rows = producer.inputs if isinstance(producer.op, Concat) else [node.input(1)]
    single = [index for index in range(len(rows)) if masks["shrink_axis"] >> index & 1]
    open_ = masks["begin"] & masks["end"] & ~masks["shrink_axis"]
    open_axes = [index for index in range(len(rows)) if open_ >> index & 1]
    if (
        len(single) != 1
        or len(single) + len(open_axes) != len(rows)
        or masks["ellipsis"]
        or masks["new_axis"]
    ):
        raise node.error(
            "its `begin` input is computed while running (through floats, or from data); only constants, integer "
            "arithmetic on shapes, and one index of one axis are supported"
        )
    if any(step != 1 for step in node.integers(3, "strides")):
        raise node.error(
            "its `begin` input is computed at run time, and its strides are not 1; slice in two steps"
        )
    (axis,) = single
    index, rank = graph.node(rows[axis]), node.fact(0).rank
    if axis >= rank or not isinstance(index.op, AddAxis):
        raise node.error("its `begin` input is computed at run time, and is not an index of one axis")
    order = (axis, *(other for other in range(rank) if other != axis))
    return node.wire(ListItem(), [node.transpose(node.input(0), order, "front"), index.inputs[0]])


def _open_bound(first: bool) -> TDim:
    """Return a bound beyond the first or the last frame."""
    return TDim.of(-FAR_END if first else FAR_END)


@tensorflow_op("Split")
def split(node: TensorflowNode) -> list[OutletId]:
    """Equal parts; the axis is the first input."""
    shape = node.fact(1).shape
    axis = node.axis(node.integer_at(0, "axis"), len(shape) - node.is_complex())
    count = node.divisor("num_split", shape[axis], f"frames of axis {axis}")
    parts = min(count, len(node.outputs))
    return _parts(node, node.input(1), axis, [shape[axis] // count] * parts)


@tensorflow_op("SplitV")
def split_v(node: TensorflowNode) -> list[OutletId]:
    """Parts of given sizes, one of which may be -1: inferred from the others."""
    shape = node.fact(0).shape
    axis = node.axis(node.integer_at(2, "axis"), len(shape) - node.is_complex())
    sizes = list(node.dims(1, "sizes"))
    for index, size in enumerate(sizes):
        if size == -1:
            other_sizes = (other for position, other in enumerate(sizes) if position != index)
            sizes[index] = shape[axis] - sum(other_sizes, TDim.of(0))
    unify(sum(sizes, TDim.of(0)), shape[axis], f"{node.wire_name} (SplitV): the parts of axis {axis}")
    return _parts(node, node.input(0), axis, sizes)


def _parts(node: TensorflowNode, x: OutletId, axis: int, sizes: Sequence[TDim]) -> list[OutletId]:
    outlets: list[OutletId] = []
    start = TDim.of(0)
    for name, size in zip(node.outputs, sizes):
        shape: Shape = node.graph.fact(x).shape
        if start == 0 and size == shape[axis]:
            outlets.append(x)
        else:
            outlets.append(
                (node.with_name(name) if name else node).wire(Slice(axis, start, start + size), [x])
            )
        start = start + size
    return outlets


@tensorflow_op("Roll")
def roll(node: TensorflowNode) -> OutletId:
    """Rotate axes: entries shifted over the end come first."""
    x, shape = node.input(0), node.fact(0).shape
    shifts, axes = node.integers(1, "shift"), node.integers(2, "axis")
    if len(shifts) != len(axes):
        raise node.error(f"{len(shifts)} shifts for {len(axes)} axes")
    for index, (shift, axis) in enumerate(zip(shifts, axes)):
        axis = node.axis(axis, len(shape))
        size = shape[axis]
        if not size.is_const:
            raise node.error(
                f"it rotates axis {axis} of {size} frames, which moves the end to the front; "
                "rotate an axis of constant size"
            )
        cut = TDim.of((int(size) - shift) % int(size) if int(size) else 0)
        ends = [
            node.wire(Slice(axis, *pair), [x], f"part{index}_{i}")
            for i, pair in enumerate(((cut, size), (TDim.of(0), cut)))
        ]
        x = node.wire(Concat(axis), ends, "" if index == len(axes) - 1 else f"rolled{index}")
    return x


@tensorflow_op("ReverseV2")
def reverse(node: TensorflowNode) -> OutletId:
    """Axes from the last frame to the first."""
    shape = node.fact(0).shape
    axes = node.axes(node.integers(1, "axis"), len(shape) - node.is_complex())
    ops = [slice_op(node, axis, shape[axis], TDim.of(FAR_END), TDim.of(-FAR_END), -1) for axis in axes]
    return slice_each(node, [op for op in ops if op is not None])
