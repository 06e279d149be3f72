"""Tensors side by side."""

from pulse.graph import OutletId
from pulse.infer.slices import stack, unstack
from pulse.ops.concat import Concat
from pulse.support.wording import count_of, spell
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("ConcatV2", complex_numbers=True)
@tensorflow_op("Concat")
def concat(node: TensorflowNode) -> OutletId:
    """Join along an axis, which is the last input, or the first of Concat."""
    inputs = node.given_inputs()
    node.require(len(inputs) >= 2, "it has no inputs; it needs at least one")
    parts = inputs[:-1] if node.op_type == "ConcatV2" else inputs[1:]
    axis_slot = len(inputs) - 1 if node.op_type == "ConcatV2" else 0
    parts = node.to_one_type(parts)
    axis = node.axis(node.integer_at(axis_slot, "axis"), node.graph.fact(parts[0]).rank - node.is_complex())
    return parts[0] if len(parts) == 1 else node.wire(Concat(axis), parts)


@tensorflow_op("Pack", complex_numbers=True)
def pack(node: TensorflowNode) -> OutletId:
    """Stack along a new axis."""
    parts = node.to_one_type(node.given_inputs())
    node.require(parts, "nothing to stack")
    axis = node.axis(node.integer("axis", 0), node.graph.fact(parts[0]).rank - node.is_complex() + 1)
    return stack(node, parts, axis)


@tensorflow_op("Unpack", complex_numbers=True)
def unpack(node: TensorflowNode) -> list[OutletId]:
    """Cut into slices of one frame, without the axis."""
    dims = node.fact(0).shape
    axis = node.axis(node.integer("axis", 0), len(dims) - node.is_complex())
    count = node.integer("num")
    if dims[axis] != count:
        raise node.error(
            f"{count_of(count, 'part')} of axis {axis} of {node.fact(0)}; give that size with {spell('inputs')}"
        )
    return unstack(node, [node.input(0)] * len(node.outputs), axis)
