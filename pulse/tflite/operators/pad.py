"""Padding."""

import numpy as np

from pulse.graph import OutletId
from pulse.infer import nhwc
from pulse.ops.op import PadMode
from pulse.ops.pad import Pad
from pulse.tflite.codes import requantize_input
from pulse.tflite.node import TfliteNode, decode
from pulse.tflite.registry import tflite_op

PAD_OP = "_PAD_OF_DILATION"
"""Pads by the first list minus the second: the padding that remains at both ends after the crops."""


@tflite_op("PAD", "PADV2")
def pad(node: TfliteNode) -> OutletId:
    """Pad with zeros, or a given number; for codes with the code of zero."""
    fill = 0.0
    if node.op_type == "PADV2" and node.output_tensors[0].has_codes:
        fill_tensor, quantization = node.input_tensor(2), node.output_tensors[0].quantization
        if fill_tensor.data is None or fill_tensor.quantization is None or quantization is None:
            raise node.error(
                "its number to fill with is computed while running; only a constant is supported"
            )
        fill = float(np.rint(decode(fill_tensor).ravel()[0] / quantization.scale[0]))
    elif node.op_type == "PADV2":
        fill = float(node.scalar(2, "number to fill with"))
    return _pad(node, "constant", fill)


@tflite_op("MIRROR_PAD")
def mirror_pad(node: TfliteNode) -> OutletId:
    """Mirror frames, with or without the one at the border."""
    return _pad(node, "symmetric" if node.integer("Mode", 0) else "reflect", 0.0)


@tflite_op(PAD_OP)
def pad_of_dilation(node: TfliteNode) -> OutletId:
    """Pad without the crops that a convolution without padding would leave of it."""
    return node.name_result(nhwc.pad_of_dilation(node, requantize_input(node)))


def _pad(node: TfliteNode, mode: PadMode, fill: float) -> OutletId:
    pairs = tuple(node.end_amounts(1, node.fact(0).rank, "paddings"))
    return node.wire(Pad(pairs, mode, fill), [requantize_input(node)])
