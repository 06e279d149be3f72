"""Normalisations."""

import numpy as np

from pulse.graph import OutletId
from pulse.ops.norm import Softmax
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.elementwise import finish_output
from pulse.tflite.operators.norm_int16 import MAX_ENTRIES, softmax_of_int16
from pulse.tflite.registry import tflite_op


@tflite_op("SOFTMAX", "LOG_SOFTMAX")
def softmax(node: TfliteNode) -> OutletId:
    """Wire softmax over the last axis, of x times beta."""
    beta = float(node.attributes.get("Beta", 1.0)) if node.op_type == "SOFTMAX" else 1.0
    wide = node.has_codes and node.output_tensors[0].dtype == np.int16
    size = node.size(0, -1)
    if node.op_type == "SOFTMAX" and wide and size.is_const and int(size) <= MAX_ENTRIES:
        return softmax_of_int16(node, beta)
    x = node.values(0)
    if beta != 1.0:
        x = node.apply("mul", x, beta, suffix="sharpened")
    op = Softmax(node.graph.fact(x).rank - 1, node.op_type == "LOG_SOFTMAX")
    return finish_output(node, node.wire(op, [x], "value"))
