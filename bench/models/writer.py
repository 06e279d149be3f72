"""Writes the nodes of a synthetic model, weights seeded; each operator returns the name of its output."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
"""The opset of the models."""

Shape = Sequence[int | str]


class Writer:
    """Nodes and weights of one model. Biases are small; products with weights keep the power of their input."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.RandomState(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add_node(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Add one operator, named after its first output."""
        self.nodes.append(helper.make_node(op, list(inputs), list(outputs), outputs[0], **attributes))

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator with one output; return the output's name."""
        name = f"{op.lower()}{len(self.nodes)}"
        self.add_node(op, inputs, [name], **attributes)
        return name

    def add_constant(self, name: str, value: object) -> str:
        """Store a tensor; return its name. Python floats are f32, integers i64."""
        array = np.asarray(value)
        values = array.astype(np.float32) if array.dtype.kind == "f" else array
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def add_integers(self, *values: int) -> str:
        """Store a list of i64 once; return its name."""
        name = "_".join(["i", *map(str, values)])
        if all(weight.name != name for weight in self.weights):
            self.add_constant(name, np.array(values, np.int64))
        return name

    def add_weight(self, name: str, *shape: int, fan_in: int | None = None) -> str:
        """Store a random f32 tensor, scaled for sums of ``fan_in`` products; return its name."""
        terms = int(np.prod(shape[1:])) if fan_in is None else fan_in
        values: NDArray[np.float64] = self.random.standard_normal(shape) / np.sqrt(terms)
        return self.add_constant(name, values)

    def add_bias(self, name: str, size: int) -> str:
        """Store a small random vector; return its name."""
        return self.add_constant(name, 0.1 * self.random.standard_normal(size))

    def add_conv(self, x: str, y: str, c_in: int, c_out: int, kernel: int = 1, **attributes: Any) -> str:
        """Add a convolution with bias, ``x`` [1, c_in, frames] to ``y`` [1, c_out, frames]."""
        bias = self.add_bias(f"{y}_b", c_out)
        weight = self.add_weight(f"{y}_w", c_out, c_in, kernel)
        self.add_node("Conv", [x, weight, bias], [y], kernel_shape=[kernel], **attributes)
        return y

    def add_linear(self, x: str, y: str, rows: int, columns: int) -> str:
        """Add a linear layer with bias, ``x`` [..., rows] to ``y`` [..., columns]."""
        weight = self.add_weight(f"{y}_w", rows, columns, fan_in=rows)
        self.add_node("MatMul", [x, weight], [f"{y}_product"])
        self.add_node("Add", [f"{y}_product", self.add_bias(f"{y}_b", columns)], [y])
        return y

    def add_layer_norm(self, x: str, y: str, size: int) -> str:
        """Add a layer norm of the last axis, with gains of about 1."""
        gain = self.add_constant(f"{y}_gain", 1 + 0.1 * self.random.standard_normal(size))
        self.add_node("LayerNormalization", [x, gain, self.add_bias(f"{y}_b", size)], [y], axis=-1)
        return y

    def model(
        self, name: str, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]
    ) -> onnx.ModelProto:
        """Return the model after onnx has checked it."""
        graph = helper.make_graph(self.nodes, name, list(inputs), list(outputs), self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        return model


def tensor(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    """Return the declaration of an input or output, f32."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
