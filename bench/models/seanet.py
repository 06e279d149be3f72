"""A causal SEANet: strided convolutions and residual units from raw sound to a code, and the way back."""

import math

import onnx

from bench.models.writer import Writer, tensor

STRIDES = (2, 4, 5, 8)
"""Strides of the stages of the encoder, the first one first."""
HOP = math.prod(STRIDES)
"""Samples of a frame of the code."""
CODE_CHANNELS = 32
"""Channels of the code."""
END_TAPS = 7
"""Taps of the first and the last convolution."""


class Seanet(Writer):
    """The layers that both ways are made of."""

    def add_causal_conv(self, x: str, y: str, c_in: int, c_out: int, kernel: int, stride: int = 1) -> str:
        """Add a causal convolution."""
        return self.add_conv(x, y, c_in, c_out, kernel, pads=[kernel - stride, 0], strides=[stride])

    def add_residual(self, x: str, y: str, channels: int) -> str:
        """Add a residual unit: ELU, a narrow convolution over 3 frames, ELU, a convolution back to all channels."""
        narrow = self.add_causal_conv(self.add("Elu", x), f"{y}_narrow", channels, channels // 2, 3)
        restored = self.add_conv(self.add("Elu", narrow), f"{y}_wide", channels // 2, channels)
        return self.add("Add", x, restored)

    def add_upsampling(self, x: str, y: str, c_in: int, c_out: int, stride: int) -> str:
        """Add a transposed convolution over two strides, without the overlapping frames at the end."""
        weight = self.add_weight(f"{y}_w", c_in, c_out, 2 * stride, fan_in=2 * c_in)
        attributes = {"kernel_shape": [2 * stride], "strides": [stride], "pads": [0, stride]}
        self.add_node("ConvTranspose", [x, weight, self.add_bias(f"{y}_b", c_out)], [y], **attributes)
        return y


def channels_at(stage: int, first: int, growth: int) -> int:
    """Return the number of channels after this many strides."""
    return first * growth**stage


def encoder(first: int = 16, growth: int = 1) -> onnx.ModelProto:
    """Return a model from sound ``x`` [1, 1, 320 T] to ``y`` [1, 32, T].

    ``growth`` multiplies the channels at each stride.
    """
    network = Seanet(320 + growth)
    h = network.add_causal_conv("x", "first", 1, first, END_TAPS)
    for stage, stride in enumerate(STRIDES):
        c_in, c_out = channels_at(stage, first, growth), channels_at(stage + 1, first, growth)
        h = network.add_residual(h, f"unit{stage}", c_in)
        h = network.add_causal_conv(network.add("Elu", h), f"down{stage}", c_in, c_out, 2 * stride, stride)
    last = channels_at(len(STRIDES), first, growth)
    network.add_causal_conv(network.add("Elu", h), "y", last, CODE_CHANNELS, END_TAPS)
    return network.model(
        f"seanet_encoder_{growth}", [tensor("x", 1, 1, "T")], [tensor("y", 1, CODE_CHANNELS, "U")]
    )


def decoder(first: int = 16, growth: int = 1) -> onnx.ModelProto:
    """Return the encoder's mirror: ``x`` [1, 32, T] to sound ``y`` [1, 1, 320 T]."""
    network = Seanet(640 + growth)
    h = network.add_causal_conv(
        "x", "first", CODE_CHANNELS, channels_at(len(STRIDES), first, growth), END_TAPS
    )
    for stage, stride in reversed(list(enumerate(STRIDES))):
        c_in, c_out = channels_at(stage + 1, first, growth), channels_at(stage, first, growth)
        h = network.add_upsampling(network.add("Elu", h), f"up{stage}", c_in, c_out, stride)
        h = network.add_residual(h, f"unit{stage}", c_out)
    network.add_causal_conv(network.add("Elu", h), "y", first, 1, END_TAPS)
    return network.model(
        f"seanet_decoder_{growth}", [tensor("x", 1, CODE_CHANNELS, "T")], [tensor("y", 1, 1, "U")]
    )
