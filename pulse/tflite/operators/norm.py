"""Normalisations."""

from pulse.graph import OutletId
from pulse.ops.norm import Softmax
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.elementwise import plain
from pulse.tflite.registry import tflite_op


@tflite_op("SOFTMAX", "LOG_SOFTMAX")
def softmax(node: TfliteNode) -> OutletId:
    """Over the last axis, of x times beta."""
    x = node.values(0)
    beta = float(node.attributes.get("Beta", 1.0)) if node.op_type == "SOFTMAX" else 1.0
    if beta != 1.0:
        x = node.each("mul", x, beta, suffix="sharpened")
    op = Softmax(node.graph.fact(x).rank - 1, node.op_type == "LOG_SOFTMAX")
    return plain(node, node.wire(op, [x], "value"))
