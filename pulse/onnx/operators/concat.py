"""Tensors side by side."""

from collections.abc import Iterator

from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, SameRank, SameSize, SameType, SizeSum
from pulse.infer.rules import EVERY_INPUT
from pulse.infer.wire_facts import Axis
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.registry import writes
from pulse.ops.concat import Concat


@onnx_op("Concat")
def concat(node: NodeContext) -> OutletId:
    """Join tensors."""
    inputs = node.given_inputs()
    node.require(inputs, "it has no inputs; it needs at least one")
    axis = node.axis(node.integer("axis"), node.graph.fact(inputs[0]).rank)
    return inputs[0] if len(inputs) == 1 else node.wire(Concat(axis), inputs)


@rule("Concat", parts=EVERY_INPUT)
def infer_concat(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate sizes: along one axis they add up, along the others they are equal."""
    parts, y = node.given_inputs(), node.output
    yield SameType([*parts, y])
    yield SameRank([*parts, y])
    rank = node.rank(y)
    if rank is not None:
        concat_axis = node.axis(node.integer("axis"), rank)
        yield SizeSum(Axis(y, concat_axis), [Axis(part, concat_axis) for part in parts])
        for axis in (axis for axis in range(rank) if axis != concat_axis):
            yield SameSize([Axis(wire, axis) for wire in (*parts, y)])


writes(Concat)(lambda w, op: w.emit("Concat", w.inputs, axis=op.axis))
