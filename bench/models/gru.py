"""The front of a recurrent denoiser: features of bands through GRU layers to a gain for each band."""

import onnx

from bench.models.writer import Writer, tensor

BANDS = 32
"""Bands that get a gain."""


def gru(hidden: int = 256, layers: int = 2) -> onnx.ModelProto:
    """Return a model from ``x`` [T, 1, hidden] to gains ``y`` [T, 1, 32] in 0..1. Two layers of 256: 3.2 MB."""
    network = Writer(hidden)
    h, axis = "x", network.add_integers(1)
    for layer in range(layers):
        weights = [network.add_weight(f"{name}{layer}", 1, 3 * hidden, hidden) for name in ("w", "r")]
        network.add_constant(f"b{layer}", 0.1 * network.random.standard_normal((1, 6 * hidden)))
        sequence = f"sequence{layer}"
        network.add_node(
            "GRU", [h, *weights, f"b{layer}"], [sequence], hidden_size=hidden, linear_before_reset=1
        )
        h = network.add("Squeeze", sequence, axis)
    network.add_node("Sigmoid", [network.add_linear(h, "bands", hidden, BANDS)], ["y"])
    return network.model(
        f"gru_{layers}x{hidden}", [tensor("x", "T", 1, hidden)], [tensor("y", "T", 1, BANDS)]
    )
