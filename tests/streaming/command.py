"""Calls of the command line, and small files for it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import soundfile
from onnx import NodeProto, TensorProto, helper, numpy_helper
from typer.testing import CliRunner, Result

from pulse.facts import Array
from streaming.cli.commands import app

RUNNER = CliRunner()


def pulse(*arguments: Path | int | str, code: int = 0) -> Result:
    result = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def report(*arguments: Path | int | str) -> dict[str, Any]:
    return json.loads(pulse(*arguments, "--json").stdout)


def refusal(*arguments: Path | int | str) -> str:
    """The one line for a usage error; with --json it is also on stdout as JSON."""
    result = pulse(*arguments, code=2)
    if "--json" in arguments:
        assert f"error: {json.loads(result.stdout)['error']['message']}\n" == result.stderr
    else:
        assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def save(
    path: Path | str,
    nodes: list[NodeProto],
    inputs: dict[str, Any],
    outputs: dict[str, Any],
    constants: dict[str, Any] | tuple[Any, ...] = (),
    metadata: dict[str, str] | None = None,
) -> Path | str:
    def info(values):
        return [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in values.items()
        ]

    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in dict(constants).items()]
    graph = helper.make_graph(nodes, "graph", info(inputs), info(outputs), stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for key, value in (metadata or {}).items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.save(model, path)
    return path


def features(path: Path | str, metadata: dict[str, str] | None = None) -> Path | str:
    """x [1, T, 4] -> y [1, T, 2]."""
    weights = {"w": np.arange(8, dtype=np.float32).reshape(4, 2)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "product")]
    return save(path, nodes, {"x": [1, "T", 4]}, {"y": [1, "T", 2]}, weights, metadata)


def voice(path: Path | str) -> Path | str:
    """Write a model of audio [1, 1, T] at 8 kHz: means of 80 samples [1, 1, T/80], and the samples themselves."""
    nodes = [
        helper.make_node("AveragePool", ["audio"], ["level"], "level", kernel_shape=[80], strides=[80]),
        helper.make_node("Identity", ["audio"], ["same"], "same"),
    ]
    outputs = {"level": [1, 1, "U"], "same": [1, 1, "T"]}
    return save(path, nodes, {"audio": [1, 1, "T"]}, outputs, metadata={"sample_rate": "8000"})


def whole_axis(path: Path | str) -> Path | str:
    nodes = [helper.make_node("Softmax", ["x"], ["y"], "attention", axis=1)]
    return save(path, nodes, {"x": [1, "T"]}, {"y": [1, "T"]})


def causal_attention(path: str) -> str:
    """Write causal attention over the frames of x [1, T, 4]; queries, keys and values are the frames themselves."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["k"], "k", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "k"], ["scores"], "scores"),
        helper.make_node("Shape", ["scores"], ["shape"], "shape"),
        helper.make_node("Expand", ["low", "shape"], ["lows"], "lows"),
        helper.make_node("Trilu", ["lows", "one"], ["mask"], "mask", upper=1),
        helper.make_node("Add", ["scores", "mask"], ["masked"], "masked"),
        helper.make_node("Softmax", ["masked"], ["weights"], "weights", axis=-1),
        helper.make_node("MatMul", ["weights", "x"], ["y"], "mixed"),
    ]
    constants = {"low": np.full(1, -1e9, np.float32), "one": np.array(1)}
    return save(path, nodes, {"x": [1, "T", 4]}, {"y": [1, "T", 4]}, constants)


def write_sound(name: Path | str, samples: Array, rate: int = 16000, **how: str | None) -> Path | str:
    soundfile.write(name, samples, rate, **how)
    return name


def tone(rate: int, seconds: float = 0.5, hz: int = 300) -> Array:
    return 0.4 * np.sin(2 * np.pi * hz * np.arange(int(rate * seconds)) / rate)


def snr_db(reference: Array, x: Array) -> float:
    return 10 * np.log10(np.sum(reference**2) / np.sum((reference - x) ** 2))
