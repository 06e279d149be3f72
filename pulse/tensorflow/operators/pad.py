"""Padding."""

from pulse.graph import OutletId
from pulse.infer import nhwc
from pulse.ops.conv import NO_PAD
from pulse.ops.op import PadMode
from pulse.ops.pad import Pad
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op

PAD_OP = "_PadOfDilation"
"""Pads by the first list minus the second: the padding that remains at both ends after the crops."""
MODES: dict[str, PadMode] = {"REFLECT": "reflect", "SYMMETRIC": "symmetric"}


@tensorflow_op("Pad", complex_numbers=True)
@tensorflow_op("PadV2", "MirrorPad")
def pad(node: TensorflowNode) -> OutletId:
    """Add frames at the ends of axes."""
    rank = node.fact(0).rank - node.is_complex()
    pads = node.end_amounts(1, rank, "paddings")
    pads += [NO_PAD] * node.is_complex()
    mode: PadMode = "constant"
    fill = float(node.scalar(2, "value")) if node.op_type == "PadV2" else 0.0
    if node.op_type == "MirrorPad":
        name = node.text("mode")
        node.require(name in MODES, f"mode {name!r} is not supported")
        mode = MODES[name]
    if all(pair == NO_PAD for pair in pads):
        return node.input(0)
    return node.wire(Pad(tuple(pads), mode, fill), [node.input(0)])


@tensorflow_op(PAD_OP)
def pad_of_dilation(node: TensorflowNode) -> OutletId:
    """Pad without the crops that a convolution without padding would leave of it."""
    return node.name_result(nhwc.pad_of_dilation(node, node.input(0)))
