"""Blocks of space as batches or channels, and back."""

from pulse.graph import OutletId
from pulse.infer import nhwc
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("SpaceToBatchND", "BatchToSpaceND")
def move_blocks_to_batch(node: TensorflowNode) -> OutletId:
    """Move the positions in a block of spatial axes to the batch, or back."""
    return nhwc.move_blocks_to_batch(node, node.input(0), node.op_type == "SpaceToBatchND")


@tensorflow_op("SpaceToDepth", "DepthToSpace")
def move_blocks_to_channels(node: TensorflowNode) -> OutletId:
    """Move the positions in a block of an image to its channels, or back."""
    if node.text("data_format", "NHWC") != "NHWC":
        raise node.error(f"data_format {node.text('data_format')} is not supported, only NHWC")
    wire = nhwc.space_to_depth if node.op_type == "SpaceToDepth" else nhwc.depth_to_space
    return wire(node, node.input(0), node.integer("block_size"))
