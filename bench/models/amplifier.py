"""A guitar amplifier in the manner of neural amp models: dilated convolutions over the samples themselves."""

import onnx

from bench.models.writer import Writer, tensor

CHANNELS = 24
"""Channels between the layers."""
KERNEL = 3
"""Taps of a convolution."""
DILATIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512) * 2
"""Frames between the taps, by layer."""
RATE_HZ = 48_000
"""The sample rate that the model is made for."""


def amplifier() -> onnx.ModelProto:
    """Return a model from sound ``x`` [1, 1, T] to sound ``y`` [1, 1, T]; causal, so it has no delay."""
    network = Writer(10)
    h = network.add_conv("x", "first", 1, CHANNELS)
    skips: list[str] = []
    for layer, dilation in enumerate(DILATIONS):
        pads = [(KERNEL - 1) * dilation, 0]
        hidden = network.add_conv(
            h, f"wide{layer}", CHANNELS, CHANNELS, KERNEL, dilations=[dilation], pads=pads
        )
        active = network.add("Tanh", hidden)
        skips.append(active)
        h = network.add("Add", h, network.add_conv(active, f"back{layer}", CHANNELS, CHANNELS))
    total = skips[0]
    for skip in skips[1:]:
        total = network.add("Add", total, skip)
    network.add_conv(total, "y", CHANNELS, 1)
    return network.model("amplifier", [tensor("x", 1, 1, "T")], [tensor("y", 1, 1, "T")])
