"""Tensors updated by index."""

from pulse.graph import OutletId
from pulse.tensorflow.context import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("TensorScatterUpdate", "TensorScatterAdd")
def scatter_nd(node: TensorflowNode) -> OutletId:
    """Slices updated, or added to, by index."""
    reduction = "add" if node.op_type == "TensorScatterAdd" else "none"
    places = node.widened(node.input(1), "places")
    return node.as_onnx("ScatterND", [node.input(0), places, node.input(2)], reduction=reduction)
