"""Lookups."""

from pulse.graph import OutletId
from pulse.onnx.operators.gather import look_up
from pulse.ops.gather import Gather
from pulse.ops.gather_elements import GatherBatches
from pulse.ops.shape import AddAxis
from pulse.tflite.codes import requantize_input
from pulse.tflite.node import TfliteNode
from pulse.tflite.registry import tflite_op


@tflite_op("GATHER")
def gather(node: TfliteNode) -> OutletId:
    """Look up entries of an axis; each batch may have its own indices."""
    x, rank = requantize_input(node), node.fact(0).rank
    axis, batch = node.axis(node.integer("Axis", 0), rank), node.integer("BatchDims", 0)
    batch += node.fact(1).rank if batch < 0 else 0
    if batch == 0:
        return node.name_result(look_up(node, x, axis, node.input(1)))
    node.require(batch == axis, f"batch_dims {batch} with axis {axis} is not supported; they must be equal")
    index = node.wire(AddAxis(node.fact(1).rank), [node.input(1)], "index")
    return node.wire(GatherBatches(batch), [x, index])


@tflite_op("GATHER_ND")
def gather_nd(node: TfliteNode) -> OutletId:
    """Look up slices by the indices of their first axes."""
    return node.wire(GatherBatches(0), [requantize_input(node), node.input(1)])


@tflite_op("EMBEDDING_LOOKUP")
def embedding_lookup(node: TfliteNode) -> OutletId:
    """Look up rows of a table."""
    return node.wire(Gather(0), [node.values(1), node.input(0)])
