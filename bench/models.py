"""The bench model: a gated dilated convolution network, once offline and once with its state made explicit.

Both have the same seeded random weights. The offline form is what a runtime that pulsifies is given; the
explicit form is what one writes by hand for a runtime that only knows stateless models.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

FEATURES = 20
CHANNELS = 16
LAYERS = 24
KERNEL = 3
DILATIONS = (1, 2, 4, 8)
SEED = 24

Values = list[onnx.ValueInfoProto]


@dataclass(frozen=True)
class StatefulModel:
    """A model for one pulse, and the (input, output) names of each state that goes from step to step."""

    model: onnx.ModelProto
    states: tuple[tuple[str, str], ...]


def span(layer: int) -> int:
    """Past frames that a layer's convolution needs besides the present one."""
    return (KERNEL - 1) * DILATIONS[layer % len(DILATIONS)]


class Network:
    """Writes the layers; ``convolve_past`` is the one place where the two forms differ."""

    def __init__(self) -> None:
        self.random = np.random.RandomState(SEED)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: object) -> None:
        """One operator, named after its first output."""
        self.nodes.append(helper.make_node(op, list(inputs), list(outputs), outputs[0], **attributes))

    def weight(self, name: str, *shape: int) -> str:
        """A random f32 tensor, scaled to keep the power of what it is convolved with."""
        fan_in = int(np.prod(shape[1:]))
        values: NDArray[np.float64] = self.random.standard_normal(shape) / np.sqrt(fan_in)
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def conv(self, x: str, y: str, c_in: int, c_out: int, kernel: int = 1, **attributes: object) -> None:
        """A convolution with bias, ``x`` [1, c_in, frames] to ``y`` [1, c_out, frames]."""
        bias = 0.1 * self.random.standard_normal(c_out)
        self.weights.append(numpy_helper.from_array(bias.astype(np.float32), f"{y}_b"))
        inputs = [x, self.weight(f"{y}_w", c_out, c_in, kernel), f"{y}_b"]
        self.node("Conv", inputs, [y], kernel_shape=[kernel], **attributes)

    def convolve_past(self, x: str, y: str, layer: int) -> None:
        """Convolve over the present and the past frames, zeros before the first."""
        dilation = DILATIONS[layer % len(DILATIONS)]
        pads = [span(layer), 0]
        self.conv(x, y, CHANNELS, 2 * CHANNELS, KERNEL, dilations=[dilation], pads=pads)

    def build(self) -> None:
        """All layers, ``x`` [1, FEATURES, frames] to ``y`` [1, CHANNELS, frames]."""
        self.conv("x", "h0", FEATURES, CHANNELS)
        skips: list[str] = []
        for layer in range(LAYERS):
            h, skip = f"h{layer}", f"skip{layer}"
            self.convolve_past(h, f"both{layer}", layer)
            self.node("Split", [f"both{layer}"], [f"filter{layer}", f"gate{layer}"], axis=1)
            self.node("Tanh", [f"filter{layer}"], [f"tanh{layer}"])
            self.node("Sigmoid", [f"gate{layer}"], [f"sigmoid{layer}"])
            self.node("Mul", [f"tanh{layer}", f"sigmoid{layer}"], [f"gated{layer}"])
            if layer < LAYERS - 1:
                self.conv(f"gated{layer}", f"residual{layer}", CHANNELS, CHANNELS)
                self.node("Add", [h, f"residual{layer}"], [f"h{layer + 1}"])
            self.conv(f"gated{layer}", skip, CHANNELS, CHANNELS)
            skips.append(skip)
        total = skips[0]
        for layer, skip in enumerate(skips[1:], 1):
            self.node("Add", [total, skip], [f"total{layer}"])
            total = f"total{layer}"
        self.node("Relu", [total], ["rectified"])
        self.conv("rectified", "y", CHANNELS, CHANNELS)


class ExplicitNetwork(Network):
    """Each layer's past frames are an input ``past_*``, those for the next step an output ``next_*``."""

    def convolve_past(self, x: str, y: str, layer: int) -> None:
        dilation = DILATIONS[layer % len(DILATIONS)]
        window, begin, end, axis = f"window{layer}", f"begin{layer}", "end", "axis"
        self.node("Concat", [f"past_{layer}", x], [window], axis=2)
        self.weights.append(numpy_helper.from_array(np.array([-span(layer)]), begin))
        if layer == 0:
            self.weights.append(numpy_helper.from_array(np.array([np.iinfo(np.int64).max]), end))
            self.weights.append(numpy_helper.from_array(np.array([2]), axis))
        self.node("Slice", [window, begin, end, axis], [f"next_{layer}"])
        self.conv(window, y, CHANNELS, 2 * CHANNELS, KERNEL, dilations=[dilation])


def tensor(name: str, channels: int, frames: int | str) -> onnx.ValueInfoProto:
    """The declaration of an input or output, f32 [1, channels, frames]."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, frames])


def finish(network: Network, inputs: Values, outputs: Values) -> onnx.ModelProto:
    """Build and check the model."""
    network.build()
    graph = helper.make_graph(network.nodes, "tcn", inputs, outputs, network.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def tcn() -> onnx.ModelProto:
    """The offline network: ``x`` [1, 20, T] to ``y`` [1, 16, T], f32, causal, any T."""
    return finish(Network(), [tensor("x", FEATURES, "T")], [tensor("y", CHANNELS, "T")])


def tcn_explicit_state(pulse: int) -> StatefulModel:
    """The same network for ``pulse`` frames: ``x`` [1, 20, pulse] to ``y`` [1, 16, pulse].

    State of layer i: ``past_i`` and ``next_i`` [1, 16, span(i)]; all begin as zeros.
    """
    states = tuple((f"past_{layer}", f"next_{layer}") for layer in range(LAYERS))
    inputs = [tensor("x", FEATURES, pulse)]
    outputs = [tensor("y", CHANNELS, pulse)]
    for layer, (past, following) in enumerate(states):
        inputs.append(tensor(past, CHANNELS, span(layer)))
        outputs.append(tensor(following, CHANNELS, span(layer)))
    return StatefulModel(finish(ExplicitNetwork(), inputs, outputs), states)
