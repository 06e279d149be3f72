"""Small streaming models that are written as NNEF."""

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto

import pulse
from pulse.models import PulsedModel, TypedModel
from tests.pulse.cases.build import floats, model, node


def typed_and_pulsed(source: ModelProto, frames: int) -> tuple[TypedModel, PulsedModel]:
    typed = pulse.load(source).analyse()
    return typed, typed.declutter().pulsify(pulse=frames)


def conv(**attributes: object) -> ModelProto:
    nodes = [node("Conv", "x w", "c", **attributes), node("Relu", "c")]
    return model(nodes, {"x": floats("x", 1, 2, 9)}, {"w": floats("w", 3, 2, 3)}, stream={"x": 2})


def deconv() -> ModelProto:
    nodes = [node("ConvTranspose", "x w", "y", strides=[2], pads=[1, 1])]
    return model(nodes, {"x": floats("x", 1, 2, 9)}, {"w": floats("w", 2, 3, 4)}, stream={"x": 2})


def joined_slices() -> ModelProto:
    nodes = [node("Concat", "a x b", "y", axis=2)]
    return model(
        nodes,
        {"x": floats("x", 1, 2, 9)},
        {"a": floats("a", 1, 2, 3), "b": floats("b", 1, 2, 2)},
        stream={"x": 2},
    )


def edge() -> ModelProto:
    nodes = [node("Pad", "x p", "y", mode="edge")]
    return model(nodes, {"x": floats("x", 1, 2, 9)}, {"p": np.array([0, 0, 2, 0, 0, 3])}, stream={"x": 2})


def average() -> ModelProto:
    nodes = [node("AveragePool", "x", "y", kernel_shape=[3], pads=[1, 1])]
    return model(nodes, {"x": floats("x", 1, 2, 9)}, stream={"x": 2})


def recurrent(kind: str, gates: int, **attributes: object) -> ModelProto:
    nodes = [node(kind, "x w r b", "y", hidden_size=4, **attributes)]
    weights = {
        "w": floats("w", 1, gates * 4, 3),
        "r": floats("r", 1, gates * 4, 4),
        "b": floats("b", 1, gates * 8),
    }
    return model(nodes, {"x": floats("x", 9, 1, 3)}, weights, stream={"x": 0})


STREAMS: Mapping[str, tuple[ModelProto, int]] = {
    "causal convolution": (conv(pads=[2, 0]), 4),
    "centred convolution": (conv(pads=[1, 1]), 3),
    "strided convolution": (conv(strides=[2], pads=[0, 0]), 4),
    "transposed convolution": (deconv(), 2),
    "joined slices": (joined_slices(), 2),
    "edge padding": (edge(), 3),
    "average": (average(), 2),
    "GRU": (recurrent("GRU", 3), 2),
    "clipped GRU": (recurrent("GRU", 3, linear_before_reset=1, clip=0.7), 3),
    "LSTM": (recurrent("LSTM", 4), 2),
    "RNN": (recurrent("RNN", 1, activations=["Relu"]), 2),
}
"""Models of one operator or two, and their pulses."""


def streamed_node(*nodes: NodeProto, **constants: np.ndarray) -> ModelProto:
    return model(nodes, {"x": floats("x", 1, 2, 12)}, constants, stream={"x": 2})


BEYOND: Mapping[str, ModelProto] = {
    "reflected": streamed_node(node("Pad", "x p", mode="reflect"), p=np.array([0, 0, 2, 0, 0, 3])),
    "reflected, then a window": streamed_node(
        node("Pad", "x p", "q", mode="reflect"), node("Conv", "q w"), p=np.array([0, 0, 1, 0, 0, 1]),
        w=floats("w", 2, 2, 3),
    ),
    "average of 3": streamed_node(node("AveragePool", "x", kernel_shape=[3], pads=[1, 1])),
    "average of 4": streamed_node(node("AveragePool", "x", kernel_shape=[4], pads=[2, 1])),
    "average with stride": streamed_node(node("AveragePool", "x", kernel_shape=[3], pads=[1, 1], strides=[2])),
    "root of squares": streamed_node(node("LpPool", "x", kernel_shape=[3], pads=[1, 1])),
    "resized": streamed_node(
        node("Resize", "x _ s", mode="linear", coordinate_transformation_mode="asymmetric"),
        s=np.array([1, 1, 2], np.float32),
    ),
    "padded by stride": streamed_node(node("Conv", "x w", auto_pad="SAME_LOWER", strides=[2]), w=floats("w", 2, 2, 3)),
}  # fmt: skip
"""Models that tract's own pulses refuse."""
