"""Small models that take a chunk and states, as authors write them, and their loop in onnxruntime."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from pulse import Chunking, load
from pulse import stream as pulse_stream
from pulse.program.program import Program
from tests.noise import normal_noise
from tests.onnxruntime_sessions import open_session
from tests.pulse.cases.build import node

Array = np.ndarray
F = np.float32


def stream(
    model: ModelProto | Path,
    pulse: int | None = None,
    inputs: Mapping[str, str] | None = None,
    constants: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    symbol: str | None = None,
    backend: str = "numba",
    **chunking: Any,
) -> Program:
    """``pulse.stream`` of a model, and its description."""
    loaded = load(
        model, inputs, constants=constants, outputs=outputs, symbol=symbol, chunking=Chunking(**chunking)
    )
    return pulse_stream(loaded, pulse, backend=backend)


def build(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Mapping[str, Sequence[int | str]],
    constants: Mapping[str, Array] | None = None,
    kind: int = TensorProto.FLOAT,
) -> ModelProto:
    """A model of one type of inputs and outputs."""
    declared = [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(name, kind, shape) for name, shape in outputs.items()]
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "chunks", declared, results, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def gru(frames: int | str = 1, h: str = "h", hn: str = "hn") -> ModelProto:
    """Features x [1, frames, 4] to y [1, frames, 3], state h [1, 1, 3]."""
    constants = {
        "w": normal_noise(1, 9, 4, seed=1),
        "r": normal_noise(1, 9, 3, seed=2) / 2,
        "b": normal_noise(1, 18, seed=3),
    }
    nodes = [
        node("Transpose", "x", "turned", perm=[1, 0, 2]),
        node("GRU", f"turned w r b _ {h}", f"all {hn}", hidden_size=3, linear_before_reset=1),
        node("Squeeze", "all one", "flat"),
        node("Transpose", "flat", "y", perm=[1, 0, 2]),
    ]
    constants["one"] = np.array([1])
    return build(
        nodes,
        {"x": [1, frames, 4], h: [1, 1, 3]},
        {"y": [1, frames, 3], hn: [1, 1, 3]},
        constants,
    )


def cached_filter(source: str) -> tuple[list[NodeProto], dict[str, Array]]:
    """Return nodes and constants of a convolution [1, chunk] of 5 taps to y [1, chunk], with a cache [1, 4]."""
    nodes = [
        node("Concat", f"cache {source}", "window", axis=1),
        node("Unsqueeze", "window one", "deep"),
        node("Conv", "deep taps", "filtered"),
        node("Squeeze", "filtered one", "y"),
        node("Slice", "window start end one", "cache_out"),
    ]
    constants = {
        "one": np.array([1]),
        "taps": normal_noise(1, 1, 5, seed=4),
        "start": np.array([-4]),
        "end": np.array([1 << 40]),
    }
    return nodes, constants


def cache_of_sound(chunk: int = 8) -> ModelProto:
    """Audio x [1, chunk] through a filter of 5 taps to y [1, chunk]; cache [1, 4] is the audio before."""
    nodes, constants = cached_filter("x")
    return build(nodes, {"x": [1, chunk], "cache": [1, 4]}, {"y": [1, chunk], "cache_out": [1, 4]}, constants)


def swapped_states() -> ModelProto:
    """Y = x + a - 2b; a and b change places, c becomes the chunk, d stays, e becomes a constant, f twice a view."""
    names = "abcdef"
    nodes = [
        node("Sub", "a b", "first"),
        node("Sub", "first b", "second"),
        node("Add", "x second", "third"),
        node("Add", "third c", "fourth"),
        node("Add", "fourth d", "fifth"),
        node("Sub", "fifth e", "sixth"),
        node("Add", "sixth f", "y"),
        node("Identity", "b", "new_a"),
        node("Identity", "a", "new_b"),
        node("Identity", "x", "new_c"),
        node("Identity", "d", "new_d"),
        node("Identity", "k", "new_e"),
        node("Slice", "f back far one minus", "new_f"),
    ]
    constants = {
        "k": normal_noise(1, 6, seed=5),
        "back": np.array([5]),
        "far": np.array([-7]),
        "one": np.array([1]),
        "minus": np.array([-1]),
    }
    shape = [1, 6]
    inputs = {"x": shape, **dict.fromkeys(names, shape)}
    return build(nodes, inputs, {"y": shape, **{f"new_{name}": shape for name in names}}, constants)


def counter() -> ModelProto:
    """Integers: y [1, 1, 2] = x + count; count [2] goes up by x."""
    nodes = [
        node("Reshape", "x pair", "flat"),
        node("Add", "count flat", "countN"),
        node("Reshape", "countN deep", "y"),
    ]
    constants = {"pair": np.array([2]), "deep": np.array([1, 1, 2])}
    return build(
        nodes, {"x": [1, 1, 2], "count": [2]}, {"y": [1, 1, 2], "countN": [2]}, constants, TensorProto.INT64
    )


def half_context() -> ModelProto:
    """Sound x [1, 12], the last 4 samples before it included, to y [1, 4]; state [1, 1] runs along."""
    nodes = [
        node("Unsqueeze", "x one", "deep"),
        node("Conv", "deep taps", "low", strides=[2]),
        node("Squeeze", "low one", "flat"),
        node("ReduceMean", "x", "now", axes=[1]),
        node("Mul", "state half", "less"),
        node("Add", "less now", "state_out"),
        node("Mul", "flat state_out", "y"),
    ]
    constants = {"one": np.array([1]), "taps": normal_noise(1, 1, 6, seed=6), "half": np.array(0.5, F)}
    return build(nodes, {"x": [1, 12], "state": [1, 1]}, {"y": [1, 4], "state_out": [1, 1]}, constants)


def loop(
    model: ModelProto,
    chunks: Sequence[Mapping[str, Array]],
    states: Mapping[str, tuple[str, Array]],
) -> list[dict[str, Array]]:
    """The author's loop in onnxruntime: states by input, each with its output and its first value."""
    session = open_session(model)
    names = [output.name for output in session.get_outputs()]
    carried = {name: first for name, (_, first) in states.items()}
    steps: list[dict[str, Array]] = []
    for chunk in chunks:
        steps.append(dict(zip(names, session.run(None, {**chunk, **carried}))))
        carried = {name: steps[-1][other] for name, (other, _) in states.items()}
    return steps


def pieces(x: Array, axis: int, frames: int, context: int = 0) -> list[Array]:
    """Chunks of an input, each preceded by past frames, the last one padded with zeros."""
    widths = [(0, 0)] * x.ndim
    widths[axis] = (context, -x.shape[axis] % frames)
    padded = np.pad(x, widths)
    count = (padded.shape[axis] - context) // frames
    return [
        np.take(padded, range(number * frames, (number + 1) * frames + context), axis)
        for number in range(count)
    ]
