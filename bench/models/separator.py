"""A causal separator in the manner of Conv-TasNet: a learned filterbank, dilated depthwise blocks, two masks."""

import onnx

from bench.models.writer import Writer, tensor

FILTERS = 64
"""Filters of the learned filterbank."""
WINDOW = 16
"""Samples of a filter."""
HOP = WINDOW // 2
"""Samples between two frames."""
NARROW = 32
"""Channels between the layers."""
WIDE = 64
"""Channels inside of a layer."""
KERNEL = 3
"""Taps of a convolution."""
DILATIONS = (1, 2, 4, 8, 16, 32) * 2
"""Frames between the taps, by layer."""
SPEAKERS = 2
"""Speakers, each an output channel."""


class Separator(Writer):
    """The layers of the separator; frames are the last axis."""

    def channel_norm(self, x: str, y: str, channels: int) -> str:
        """Normalise the channels of each frame, so that it is causal."""
        normal = self.add_layer_norm(self.add("Transpose", x, perm=[0, 2, 1]), f"{y}_normal", channels)
        self.add_node("Transpose", [normal], [y], perm=[0, 2, 1])
        return y

    def add_prelu(self, x: str, y: str, channels: int) -> str:
        """Add a PRelu with a slope for each channel."""
        slope = self.add_constant(f"{y}_slope", 0.25 + 0.1 * self.random.standard_normal((channels, 1)))
        self.add_node("PRelu", [x, slope], [y])
        return y

    def add_block(self, x: str, y: str, dilation: int) -> tuple[str, str]:
        """Add a block: expand, a depthwise convolution over time, project. Returns the residual and the skip output."""
        hidden = self.add_prelu(self.add_conv(x, f"{y}_wide", NARROW, WIDE), f"{y}_active", WIDE)
        hidden = self.channel_norm(hidden, f"{y}_norm", WIDE)
        weight, bias = self.add_weight(f"{y}_depth_w", WIDE, 1, KERNEL), self.add_bias(f"{y}_depth_b", WIDE)
        attributes = {"group": WIDE, "dilations": [dilation], "pads": [(KERNEL - 1) * dilation, 0]}
        self.add_node("Conv", [hidden, weight, bias], [f"{y}_depth"], kernel_shape=[KERNEL], **attributes)
        hidden = self.channel_norm(self.add_prelu(f"{y}_depth", f"{y}_later", WIDE), f"{y}_again", WIDE)
        residual = self.add("Add", x, self.add_conv(hidden, f"{y}_residual", WIDE, NARROW))
        return residual, self.add_conv(hidden, f"{y}_skip", WIDE, NARROW)


def separator() -> onnx.ModelProto:
    """Return a model from audio ``x`` [1, 1, T] to two signals ``y`` [2, 1, T]; a pulse is a multiple of 8 samples."""
    network = Separator(64)
    weight = network.add_weight("encoder_w", FILTERS, 1, WINDOW)
    pads = [WINDOW - HOP, 0]
    network.add_node("Conv", ["x", weight], ["filtered"], kernel_shape=[WINDOW], strides=[HOP], pads=pads)
    network.add_node("Relu", ["filtered"], ["mixture"])
    h = network.add_conv(network.channel_norm("mixture", "normal", FILTERS), "narrow", FILTERS, NARROW)
    skips: list[str] = []
    for layer, dilation in enumerate(DILATIONS):
        h, skip = network.add_block(h, f"block{layer}", dilation)
        skips.append(skip)
    total = skips[0]
    for skip in skips[1:]:
        total = network.add("Add", total, skip)
    masks = network.add_conv(network.add_prelu(total, "total", NARROW), "masks", NARROW, SPEAKERS * FILTERS)
    masks = network.add("Split", network.add("Sigmoid", masks), axis=1)
    network.nodes[-1].output.append("other_mask")
    sounds = [network.add("Mul", "mixture", mask) for mask in (masks, "other_mask")]
    both = network.add("Concat", *sounds, axis=0)
    weight = network.add_weight("decoder_w", FILTERS, 1, WINDOW, fan_in=FILTERS)
    attributes = {"kernel_shape": [WINDOW], "strides": [HOP], "pads": [0, WINDOW - HOP]}
    network.add_node("ConvTranspose", [both, weight], ["y"], **attributes)
    return network.model("separator", [tensor("x", 1, 1, "T")], [tensor("y", SPEAKERS, 1, "U")])
