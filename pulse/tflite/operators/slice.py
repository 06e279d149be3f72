"""Parts of tensors."""

from collections.abc import Sequence

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.infer.slices import part_sizes, split_parts, wire_reversed, wire_slice, wire_strided_slice
from pulse.support.wording import count_of
from pulse.tflite.codes import requantize_input
from pulse.tflite.node import TfliteNode
from pulse.tflite.registry import tflite_op

MASKS = {
    "begin": "Begin",
    "end": "End",
    "ellipsis": "Ellipsis",
    "new_axis": "NewAxis",
    "shrink_axis": "ShrinkAxis",
}
"""Mask of a strided slice -> the beginning of its option's name."""


@tflite_op("STRIDED_SLICE", complex_numbers=True)
def strided_slice(node: TfliteNode) -> OutletId:
    """Slice by bounds and steps; their masks have one bit for each entry of the bounds."""
    masks = {name: node.integer(f"{option}Mask", 0) for name, option in MASKS.items()}
    return wire_strided_slice(node, requantize_input(node), node.own_rank, masks)


@tflite_op("SLICE")
def slice_(node: TfliteNode) -> OutletId:
    """Take this many entries from ``begin`` on; a size of -1 goes to the end."""
    return wire_slice(node, requantize_input(node), node.dims(1, "begin"), node.dims(2, "size"))


@tflite_op("SPLIT")
def split(node: TfliteNode) -> list[OutletId]:
    """Split an axis into equal parts; the axis comes first."""
    shape = node.fact(1).shape
    axis, count = node.axis(node.integer_at(0, "axis"), len(shape)), len(node.output_tensors)
    size = shape[axis]
    if size.is_const and int(size) % count:
        raise node.error(
            f"{count_of(size, 'entry', 'entries')} of axis {axis} cannot be divided into {count_of(count, 'part')}"
        )
    return _split(node, 1, axis, [size // count] * count)


@tflite_op("SPLIT_V")
def split_v(node: TfliteNode) -> list[OutletId]:
    """Split an axis into parts; a size of -1 is inferred from the others."""
    shape = node.fact(0).shape
    axis = node.axis(node.integer_at(2, "axis"), len(shape))
    sizes = part_sizes(node, shape[axis])
    if len(sizes) != len(node.output_tensors):
        raise node.error(f"{count_of(len(sizes), 'size')} for {count_of(len(node.output_tensors), 'part')}")
    return _split(node, 0, axis, sizes)


def _split(node: TfliteNode, slot: int, axis: int, sizes: Sequence[TDim]) -> list[OutletId]:
    wires = [requantize_input(node, slot, f"moved{index}", index) for index in range(len(sizes))]
    return split_parts(node, wires, axis, sizes)


@tflite_op("REVERSE_V2")
def reverse(node: TfliteNode) -> OutletId:
    """Reverse axes."""
    axes = node.axes(node.integers(1, "axes"), node.fact(0).rank)
    return wire_reversed(node, requantize_input(node), axes)
