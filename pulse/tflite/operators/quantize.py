"""Numbers as codes, and back."""

import numpy as np

from pulse.facts import F32
from pulse.graph import OutletId
from pulse.tflite.codes import NONE, quantized_output, requantize, rescale_codes
from pulse.tflite.node import TfliteNode
from pulse.tflite.registry import tflite_op


def encode(node: TfliteNode, y: OutletId, activation: int = NONE) -> OutletId:
    """Quantise floats to codes of the output, after a fused activation."""
    _, quantization = quantized_output(node)
    return rescale_codes(node, node.cast(y, F32, "f32"), np.float32(1) / quantization.scale[0], activation)


@tflite_op("QUANTIZE")
def quantize(node: TfliteNode) -> OutletId:
    """Convert floats to codes, or codes of one scale to codes of another."""
    return requantize(node, 0) if node.input_tensor(0).has_codes else encode(node, node.values(0))


@tflite_op("DEQUANTIZE")
def dequantize(node: TfliteNode) -> OutletId:
    """Convert codes, or f16, to f32."""
    return node.name_result(node.values(0))
