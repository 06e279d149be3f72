"""Slices and splits."""

from collections.abc import Mapping, Sequence

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.infer.counting import shift_of
from pulse.infer.slices import part_sizes, split_parts, wire_reversed, wire_slice, wire_strided_slice
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Elementwise
from pulse.ops.shape import AddAxis
from pulse.ops.slice import Slice
from pulse.support.wording import count_of
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.operators.control_lists import ListItem
from pulse.tensorflow.registry import tensorflow_op

MAX_WIDTH = 64
"""Frames that a slice takes from an index that is computed while running; more are refused, as each is a node."""
MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")


@tensorflow_op("Slice", complex_numbers=True)
def slice_(node: TensorflowNode) -> OutletId:
    """Take along each axis ``size`` entries from ``begin`` on; a size of -1 is the rest of the axis."""
    return wire_slice(node, node.input(0), node.dims(1, "begin"), node.dims(2, "size"))


@tensorflow_op("StridedSlice", complex_numbers=True)
def strided_slice(node: TensorflowNode) -> OutletId:
    """Slice each axis; the masks omit bounds, add axes and remove axes."""
    rank = node.fact(0).rank - node.is_complex()
    masks = {name: node.integer(f"{name}_mask", 0) for name in MASKS}
    if node.value(1) is None:
        return _pick_at_index(node, masks)
    return wire_strided_slice(node, node.input(0), rank, masks)


def _pick_at_index(node: TensorflowNode, masks: Mapping[str, int]) -> OutletId:
    """Return ``x[:, i]``, or ``x[:, i : i + 3]``, with an index that is computed while running: frames of one axis."""
    graph, rows = node.graph, _bounds(node, 1)
    width = _width_at_index(node, masks)
    single = [index for index in range(len(rows)) if masks["shrink_axis"] >> index & 1]
    if width:
        single = [index for index in range(len(rows)) if not masks["begin"] >> index & 1]
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
            f"arithmetic on shapes, and one index of one axis, or up to {MAX_WIDTH} frames from it on, are supported; "
            "move the frames that TimeDistributed takes into the batch with a reshape"
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
    front, (first,) = node.transpose(node.input(0), order, "front"), index.inputs
    if not width:
        return node.wire(ListItem(), [front, first])
    frames: list[OutletId] = []
    for offset in range(width):
        number = node.constant(np.array(offset, graph.fact(first).dtype), f"offset{offset}")
        place = node.wire(Elementwise("add"), [first, number], f"place{offset}")
        frame = node.wire(ListItem(wraps=False), [front, place], f"item{offset}")
        frames.append(node.wire(AddAxis(axis), [frame], f"frame{offset}"))
    return node.wire(Concat(axis), frames)


def _bounds(node: TensorflowNode, slot: int) -> Sequence[OutletId]:
    """Return the bounds of all axes, of an input that is computed."""
    producer = node.graph.node(node.input(slot))
    return producer.inputs if isinstance(producer.op, Concat) else [node.input(slot)]


def _width_at_index(node: TensorflowNode, masks: Mapping[str, int]) -> int:
    """Return the frames of ``i : i + 3``, the only bounds of a slice; 0 if they are not of this kind."""
    graph, begins, ends = node.graph, _bounds(node, 1), _bounds(node, 2)
    bounded = [index for index in range(len(begins)) if not (masks["begin"] & masks["end"]) >> index & 1]
    if (
        len(bounded) != 1
        or len(ends) != len(begins)
        or masks["shrink_axis"]
        or masks["begin"] != masks["end"]
    ):
        return 0
    bounds = [graph.node(rows[bounded[0]]) for rows in (begins, ends)]
    if not all(isinstance(bound.op, AddAxis) for bound in bounds):
        return 0
    (first, shift), (last, end) = (shift_of(graph, bound.inputs[0]) for bound in bounds)
    return end - shift if first == last and 0 < end - shift <= MAX_WIDTH else 0


@tensorflow_op("Split", complex_numbers=True)
def split(node: TensorflowNode) -> list[OutletId]:
    """Split into equal parts; the axis is the first input."""
    shape = node.fact(1).shape
    axis = node.axis(node.integer_at(0, "axis"), len(shape) - node.is_complex())
    count = node.divisor("num_split", shape[axis], f"frames of axis {axis}")
    parts = min(count, len(node.outputs))
    return split_parts(node, [node.input(1)] * parts, axis, [shape[axis] // count] * parts)


@tensorflow_op("SplitV", complex_numbers=True)
def split_v(node: TensorflowNode) -> list[OutletId]:
    """Split into parts of given sizes, one of which may be -1: inferred from the others."""
    shape = node.fact(0).shape
    axis = node.axis(node.integer_at(2, "axis"), len(shape) - node.is_complex())
    sizes = part_sizes(node, shape[axis])
    return split_parts(node, [node.input(0)] * len(sizes), axis, sizes)


@tensorflow_op("Roll")
def roll(node: TensorflowNode) -> OutletId:
    """Rotate axes: entries shifted over the end come first."""
    x, shape = node.input(0), node.fact(0).shape
    shifts, axes = node.integers(1, "shift"), node.integers(2, "axis")
    node.require(len(shifts) == len(axes), f"{len(shifts)} shifts for {count_of(len(axes), 'axis', 'axes')}")
    for index, (shift, axis) in enumerate(zip(shifts, axes)):
        axis = node.axis(axis, len(shape))
        size = shape[axis]
        if not size.is_const:
            raise node.error(
                f"it rotates axis {axis} of {count_of(size, 'frame')}, which moves the end to the front; "
                "rotate an axis of constant size"
            )
        cut = TDim.of((int(size) - shift) % int(size) if int(size) else 0)
        ends = [
            node.wire(Slice(axis, *pair), [x], f"part{index}_{i}")
            for i, pair in enumerate(((cut, size), (TDim.of(0), cut)))
        ]
        x = node.wire(Concat(axis), ends, "" if index == len(axes) - 1 else f"rolled{index}")
    return x


@tensorflow_op("ReverseV2", complex_numbers=True)
def reverse(node: TensorflowNode) -> OutletId:
    """Reverse axes."""
    axes = node.axes(node.integers(1, "axis"), node.fact(0).rank - node.is_complex())
    return wire_reversed(node, node.input(0), axes)
