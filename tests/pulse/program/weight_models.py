"""Stacks of layers whose weights are stored in several forms, and a check of their lanes."""

import numpy as np
import onnx

from pulse.facts import Array
from pulse.program.program import Program
from tests.pulse.cases.build import floats, model, node


def recurrent_weights(op: str, features: int, hidden: int) -> dict[str, Array]:
    rows = {"RNN": 1, "GRU": 3, "LSTM": 4}[op] * hidden
    return {
        "w": floats((op, "w"), 1, rows, features) * np.float32(features**-0.5),
        "r": floats((op, "r"), 1, rows, hidden) * np.float32(0.5 * hidden**-0.5),
        "b": floats((op, "b"), 1, 2 * rows) * np.float32(0.1),
    }


def stack(name: str, bad: float | None = None) -> onnx.ModelProto:
    """A small model whose large matrices are above the limit, and some below it."""
    feeds = {"x": floats("x", 1, 40, 24)}
    consts: dict[str, Array] = {}
    if name == "conv":  # strides, groups, depthwise, and both ways to transpose a convolution
        consts = {
            "k0": floats("k0", 48, 40, 3) * np.float32(0.1),
            "k1": floats("k1", 96, 24, 4) * np.float32(0.1),
            "k2": floats("k2", 96, 1, 3),
            "k3": floats("k3", 96, 36, 4) * np.float32(0.1),
            "k4": floats("k4", 36, 17, 3) * np.float32(0.1),
            "k5": floats("k5", 34, 17, 2) * np.float32(0.1),
            "bias": floats("bias", 48),
        }
        consts["k0"][0, 0, 0] = consts["k0"][0, 0, 0] if bad is None else bad
        nodes = [
            node("Conv", "x k0 bias", "a", pads=[2, 0]),
            node("Conv", "a k1", "b", strides=[2], group=2, pads=[2, 0]),
            node("Conv", "b k2", "c", group=96),
            node("ConvTranspose", "c k3", "d", strides=[2]),
            node("ConvTranspose", "d k4", "e", group=1),
            node("Relu", "e", "y"),
        ]
        del consts["k5"]
        return model(nodes, feeds, consts, stream={"x": 2})
    if name == "matmul":  # the matrix on either side
        consts = {
            "w0": floats("w0", 50, 40) * np.float32(0.15),
            "w1": floats("w1", 50, 70) * np.float32(0.15),
        }
        nodes = [
            node("MatMul", "w0 x", "a"),
            node("Tanh", "a", "b"),
            node("Transpose", "b", "c", perm=[0, 2, 1]),
            node("MatMul", "c w1", "y"),
        ]
        return model(nodes, feeds, consts, stream={"x": 2})
    op, _, form = name.partition("_")
    attributes = {"linear_before_reset": int(form != "reset")} if op == "GRU" else {}
    consts = recurrent_weights(op, 40, 37)
    nodes = [
        node("Transpose", "x", "frames", perm=[2, 0, 1]),
        node(op, "frames w r b", "y h", hidden_size=37, **attributes),
    ]
    return model(nodes, feeds, consts, stream={"x": 2}, outputs="y h")


STACKS = ("conv", "matmul", "GRU", "GRU_reset", "LSTM", "RNN")


def recurrence() -> onnx.ModelProto:
    """``h = tanh(h @ w + x)`` as a Scan; a scan inside it multiplies with the same matrix once more."""

    def info(*names: str) -> list[onnx.ValueInfoProto]:
        return [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [64]) for name in names]

    inner = onnx.helper.make_graph(
        [node("MatMul", "g w", "grown"), node("Tanh", "grown", "after"), node("Identity", "after", "seen")],
        "inner",
        info("g", "one"),
        info("after", "seen"),
    )
    rows = node("Scan", "mixed single", "again many", body=inner, num_scan_inputs=1)
    body = onnx.helper.make_graph(
        [
            node("MatMul", "h w", "grown1"),
            node("Add", "grown1 frame", "mixed"),
            node("Unsqueeze", "frame front", "single"),
            rows,
            node("Tanh", "again", "next"),
            node("Identity", "next", "out"),
        ],
        "body",
        info("h", "frame"),
        info("next", "out"),
    )
    scan = node("Scan", "zeros x", "last y", body=body, num_scan_inputs=1)
    constants = {"w": floats("w", 64, 64) / 8, "zeros": np.zeros(64, np.float32), "front": np.array([0])}
    return model([scan], {"x": floats("x", 9, 64)}, constants, stream={"x": 0})


def assert_lanes_agree_with_streams(program: Program, count: int, rtol: float, atol: float) -> None:
    """Each lane gives what a separate stream gives, for three pulses."""
    lanes, states = program.spawn_many(count), [program.spawn() for _ in range(count)]
    (port,) = program.inputs
    for number in range(3):
        x = floats(("lanes", number), count, *port.shape)
        outputs = lanes.step(x)
        for i, state in enumerate(states):
            for name, array in state.step(x[i]).items():
                np.testing.assert_allclose(outputs[name][i], array, rtol, atol)
