"""Blocks of space as batches or channels, and back."""

from pulse.graph import OutletId
from pulse.infer import nhwc
from pulse.tflite.codes import requantize_input
from pulse.tflite.node import TfliteNode
from pulse.tflite.registry import tflite_op


@tflite_op("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def move_blocks_to_batch(node: TfliteNode) -> OutletId:
    """Move the positions in a block of spatial axes to the batch, or back."""
    return nhwc.move_blocks_to_batch(node, requantize_input(node), node.op_type == "SPACE_TO_BATCH_ND")


@tflite_op("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def move_blocks_to_channels(node: TfliteNode) -> OutletId:
    """Move the positions in a block of an image to its channels, or back."""
    wire = nhwc.space_to_depth if node.op_type == "SPACE_TO_DEPTH" else nhwc.depth_to_space
    return wire(node, requantize_input(node), node.integer("BlockSize", 1))
