"""A convolution that looks back, with the frames before it as a state."""

from pulse.dim import ZERO, TDim
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.ops.concat import Concat
from pulse.ops.conv import NO_PAD, Conv, no_pads
from pulse.ops.dims import unify
from pulse.ops.elementwise import Elementwise
from pulse.ops.pad import Pad
from pulse.ops.slice import Slice

SILU = Elementwise("swish", (1.0,))
ACTIVATIONS = {"none": None, "silu": SILU, "swish": SILU}
REQUIRED = {"ndim": 1, "channels_last": 0, "state_window": 0, "state_update_capacity": 0, "state_length": 0}
"""Attributes of onnxruntime's operator -> their required values."""


@onnx_op("CausalConvWithState", "com.microsoft::CausalConvWithState")
def causal_conv_with_state(node: NodeContext) -> list[OutletId]:
    """Wire a depthwise convolution of the input preceded by past frames (zeros by default).

    The new state is the last ``(kernel - 1) * dilation`` of those frames; only onnxruntime's operator is dilated.
    """
    x, w = node.fact(0), node.fact(1)
    name = node.text("activation", "none")
    node.require(name in ACTIVATIONS, f"activation {name!r} is not supported; use {', '.join(ACTIVATIONS)}")
    for attribute, value in REQUIRED.items():
        if node.integer(attribute, value) != value:
            raise node.error(f"attribute {attribute} is not supported; leave it at {value}")
    dilation = node.integer("dilation", 1)
    node.require(dilation >= 1, f"attribute dilation is {dilation}; it must be 1 or more")
    if x.rank != 3 or w.rank != 3 or not (w.shape[0].is_const and w.shape[2].is_const):
        raise node.error(f"x ({x}) and the kernel ({w}) must have 3 axes, the kernel of constant size")
    channels, past = int(w.shape[0]), (int(w.shape[2]) - 1) * dilation
    if node.has(3):
        unify(
            node.fact(3).shape[2],
            TDim.of(past),
            f"{node.wire_name} (CausalConvWithState): frames of the state",
        )
        whole = node.wire(Concat(2), [node.input(3), node.input(0)], "whole")
    else:
        whole = node.wire(Pad((NO_PAD, NO_PAD, (TDim.of(past), ZERO))), [node.input(0)], "whole")
    length = node.graph.fact(whole).shape[2]
    activation = ACTIVATIONS[name]
    operands = [whole, node.input(1), *([node.input(2)] if node.has(2) else [])]
    y = node.wire(Conv((1,), (dilation,), no_pads(1), channels), operands, "convolved" if activation else "")
    if activation is not None:
        y = node.wire(activation, [y])
    if len(node.outputs) < 2 or not node.outputs[1]:
        return [y]
    return [y, node.with_name(node.outputs[1]).wire(Slice(2, length - past, length), [whole])]
