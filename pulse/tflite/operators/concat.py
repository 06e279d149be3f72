"""Tensors side by side."""

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.infer.slices import stack, unstack
from pulse.ops.concat import Concat
from pulse.ops.dims import unify
from pulse.tflite.codes import activate, requantize_input
from pulse.tflite.node import TfliteNode
from pulse.tflite.registry import tflite_op


@tflite_op("CONCATENATION")
def concatenation(node: TfliteNode) -> OutletId:
    """Concatenate tensors, without the empty ones, which a file may write with any other sizes."""
    parts = [
        requantize_input(node, slot, f"part{slot}")
        for slot in range(len(node.inputs))
        if all(dim != 0 for dim in node.fact(slot).shape)
    ]
    if not parts:
        return node.name_result(requantize_input(node))
    axis = node.axis(node.integer("Axis", 0), node.graph.fact(parts[0]).rank)
    y = parts[0] if len(parts) == 1 else node.wire(Concat(axis), parts, "joined")
    return node.name_result(y) if node.has_codes else activate(node, y)


@tflite_op("PACK")
def pack(node: TfliteNode) -> OutletId:
    """Stack tensors on a new axis."""
    axis = node.axis(node.integer("Axis", 0), node.fact(0).rank + 1)
    return stack(
        node, [requantize_input(node, slot, f"part{slot}") for slot in range(len(node.inputs))], axis
    )


@tflite_op("UNPACK")
def unpack(node: TfliteNode) -> list[OutletId]:
    """Wire the entries of an axis, one tensor each."""
    shape = node.fact(0).shape
    axis = node.axis(node.integer("Axis", 0), len(shape))
    count = len(node.output_tensors)
    unify(shape[axis], TDim.of(count), f"{node.wire_name} (UNPACK): the entries of axis {axis}")
    return unstack(node, [requantize_input(node, 0, f"moved{index}", index) for index in range(count)], axis)
