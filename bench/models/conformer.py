"""One block of a chunked conformer: attention to the own and earlier chunks, a convolution, two feed-forwards."""

import math

import numpy as np
import onnx

from bench.models.writer import Writer, tensor

WIDTH = 144
"""Features of a frame."""
HEADS = 4
"""Heads of the attention."""
CHUNK = 8
"""Frames of a chunk."""
LEFT_CHUNKS = 4
"""Earlier chunks that a chunk attends to."""
KERNEL = 15
"""Taps of the depthwise convolution."""


class Conformer(Writer):
    """The modules of a conformer block; x [1, T, 144]."""

    def add_swish(self, x: str) -> str:
        """Add x times its sigmoid."""
        return self.add("Mul", x, self.add("Sigmoid", x))

    def add_feed_forward(self, x: str, y: str) -> str:
        """Add half of a residual feed-forward step of four times the width."""
        hidden = self.add_linear(self.add_layer_norm(x, f"{y}_norm", WIDTH), f"{y}_wide", WIDTH, 4 * WIDTH)
        narrow = self.add_linear(self.add_swish(hidden), f"{y}_narrow", 4 * WIDTH, WIDTH)
        return self.add("Add", x, self.add("Mul", narrow, "half"))

    def heads(self, x: str, y: str) -> str:
        """Split into heads: [1, T, 144] to [1, 4, T, 36]."""
        rows = self.add(
            "Reshape", self.add_linear(x, y, WIDTH, WIDTH), self.add_integers(0, 0, HEADS, WIDTH // HEADS)
        )
        return self.add("Transpose", rows, perm=[0, 2, 1, 3])

    def add_visibility_mask(self) -> str:
        """Add the mask [T, T]: frame i attends to frame j of its own chunk or of one of the four before."""
        frames = self.add("Gather", self.add("Shape", "x"), self.add_constant("one", np.array(1)))
        steps = self.add("Range", self.add_constant("zero", np.array(0)), frames, "one")
        chunk = self.add("Div", steps, self.add_constant("chunk", np.array(CHUNK)))
        rows = self.add("Unsqueeze", chunk, self.add_integers(1))
        distance = self.add("Sub", rows, self.add("Unsqueeze", chunk, self.add_integers(0)))
        left_chunks = self.add_constant("left_chunks", np.array(LEFT_CHUNKS))
        return self.add(
            "And",
            self.add("GreaterOrEqual", distance, "zero"),
            self.add("LessOrEqual", distance, left_chunks),
        )

    def add_attention(self, x: str) -> str:
        """Add self-attention with four heads."""
        normal = self.add_layer_norm(x, "attention_norm", WIDTH)
        q, k, v = (self.heads(normal, name) for name in ("q", "k", "v"))
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.add("Div", scores, self.add_constant("root", math.sqrt(WIDTH / HEADS)))
        scores = self.add("Where", self.add_visibility_mask(), scores, self.add_constant("hidden", -math.inf))
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), v)
        rows = self.add(
            "Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), self.add_integers(0, 0, WIDTH)
        )
        return self.add("Add", x, self.add_linear(rows, "attention_out", WIDTH, WIDTH))

    def add_convolution(self, x: str) -> str:
        """Add the convolution module: gated linear unit, causal depthwise convolution, norm, swish, projection."""
        frames = self.add("Transpose", self.add_layer_norm(x, "conv_norm", WIDTH), perm=[0, 2, 1])
        both = self.add_conv(frames, "conv_both", WIDTH, 2 * WIDTH)
        self.add_node("Split", [both], ["conv_linear", "conv_gate"], axis=1)
        gated = self.add("Mul", "conv_linear", self.add("Sigmoid", "conv_gate"))
        weight, bias = self.add_weight("conv_depth_w", WIDTH, 1, KERNEL), self.add_bias("conv_depth_b", WIDTH)
        attributes = {"group": WIDTH, "kernel_shape": [KERNEL], "pads": [KERNEL - 1, 0]}
        self.add_node("Conv", [gated, weight, bias], ["conv_depth"], **attributes)
        gain = self.add_constant("batch_gain", 1 + 0.1 * self.random.standard_normal(WIDTH))
        shift, mean = self.add_bias("batch_shift", WIDTH), self.add_bias("batch_mean", WIDTH)
        variance = self.add_constant("batch_variance", self.random.uniform(0.5, 1.5, WIDTH))
        normal = self.add("BatchNormalization", "conv_depth", gain, shift, mean, variance)
        out = self.add_conv(self.add_swish(normal), "conv_out", WIDTH, WIDTH)
        return self.add("Add", x, self.add("Transpose", out, perm=[0, 2, 1]))


def conformer() -> onnx.ModelProto:
    """Return a model from ``x`` [1, T, 144] to ``y`` [1, T, 144], with attention in chunks of 8 frames."""
    network = Conformer(144)
    network.add_constant("half", 0.5)
    h = network.add_convolution(network.add_attention(network.add_feed_forward("x", "before")))
    network.add_layer_norm(network.add_feed_forward(h, "after"), "y", WIDTH)
    return network.model("conformer", [tensor("x", 1, "T", WIDTH)], [tensor("y", 1, "T", WIDTH)])
