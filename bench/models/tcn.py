"""A gated dilated convolution network, once offline and once with its state made explicit by hand.

Both have the same seeded random weights. The offline form is for runtimes that pulsify; the explicit form
is written by hand for runtimes of stateless models.
"""

import numpy as np
import onnx

from bench.models.explicit import Explicit
from bench.models.writer import Writer, tensor
from pulse.chunks.chunking import Chunking

FEATURES = 20
"""Channels of the input."""
CHANNELS = 16
"""Channels of the layers and of the output."""
LAYERS = 24
"""Gated layers."""
KERNEL = 3
"""Taps of a convolution."""
DILATIONS = (1, 2, 4, 8)
"""Frames between the taps; the layers cycle through them."""
SEED = 24
"""The seed of the weights, the same for both forms."""


def span(layer: int) -> int:
    """Return the number of past frames that a layer's convolution needs besides the present one."""
    return (KERNEL - 1) * DILATIONS[layer % len(DILATIONS)]


class Network(Writer):
    """Writes the layers; ``convolve_past`` is the one place where the two forms differ."""

    def __init__(self) -> None:
        super().__init__(SEED)

    def convolve_past(self, x: str, y: str, layer: int) -> None:
        """Convolve over the present and the past frames, zeros before the first."""
        dilation = DILATIONS[layer % len(DILATIONS)]
        pads = [span(layer), 0]
        self.add_conv(x, y, CHANNELS, 2 * CHANNELS, KERNEL, dilations=[dilation], pads=pads)

    def build(self) -> None:
        """Add all layers, from ``x`` [1, FEATURES, frames] to ``y`` [1, CHANNELS, frames]."""
        self.add_conv("x", "h0", FEATURES, CHANNELS)
        skips: list[str] = []
        for layer in range(LAYERS):
            h, skip = f"h{layer}", f"skip{layer}"
            self.convolve_past(h, f"both{layer}", layer)
            self.add_node("Split", [f"both{layer}"], [f"filter{layer}", f"gate{layer}"], axis=1)
            self.add_node("Tanh", [f"filter{layer}"], [f"tanh{layer}"])
            self.add_node("Sigmoid", [f"gate{layer}"], [f"sigmoid{layer}"])
            self.add_node("Mul", [f"tanh{layer}", f"sigmoid{layer}"], [f"gated{layer}"])
            if layer < LAYERS - 1:
                self.add_conv(f"gated{layer}", f"residual{layer}", CHANNELS, CHANNELS)
                self.add_node("Add", [h, f"residual{layer}"], [f"h{layer + 1}"])
            self.add_conv(f"gated{layer}", skip, CHANNELS, CHANNELS)
            skips.append(skip)
        total = skips[0]
        for layer, skip in enumerate(skips[1:], 1):
            self.add_node("Add", [total, skip], [f"total{layer}"])
            total = f"total{layer}"
        self.add_node("Relu", [total], ["rectified"])
        self.add_conv("rectified", "y", CHANNELS, CHANNELS)


class ExplicitNetwork(Network):
    """Each layer's past frames are an input ``past_*``, those for the next step an output ``next_*``."""

    def convolve_past(self, x: str, y: str, layer: int) -> None:
        dilation = DILATIONS[layer % len(DILATIONS)]
        window = f"window{layer}"
        self.add_node("Concat", [f"past_{layer}", x], [window], axis=2)
        end, axis = self.add_integers(np.iinfo(np.int64).max), self.add_integers(2)
        self.add_node("Slice", [window, self.add_integers(-span(layer)), end, axis], [f"next_{layer}"])
        self.add_conv(window, y, CHANNELS, 2 * CHANNELS, KERNEL, dilations=[dilation])


def tcn() -> onnx.ModelProto:
    """Return the offline network: ``x`` [1, 20, T] to ``y`` [1, 16, T], f32, causal, any T."""
    network = Network()
    network.build()
    return network.model("tcn", [tensor("x", 1, FEATURES, "T")], [tensor("y", 1, CHANNELS, "T")])


def tcn_explicit_state(pulse: int) -> Explicit:
    """Return the same network for ``pulse`` frames: ``x`` [1, 20, pulse] to ``y`` [1, 16, pulse].

    State of layer i: ``past_i`` and ``next_i`` [1, 16, span(i)]; all begin as zeros.
    """
    inputs, outputs = [tensor("x", 1, FEATURES, pulse)], [tensor("y", 1, CHANNELS, pulse)]
    for layer in range(LAYERS):
        inputs.append(tensor(f"past_{layer}", 1, CHANNELS, span(layer)))
        outputs.append(tensor(f"next_{layer}", 1, CHANNELS, span(layer)))
    network = ExplicitNetwork()
    network.build()
    states = {f"past_{layer}": f"next_{layer}" for layer in range(LAYERS)}
    chunking = Chunking(states, axes={"x": 2, "y": 2})
    return Explicit.from_author(network.model("tcn", inputs, outputs), pulse, chunking)
