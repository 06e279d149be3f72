"""Recurrent layers of cuDNN against numpy, from their vector of weights."""

from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import LoadError
from pulse.facts import Array
from tests.formulas import sigmoid
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, GraphDefBuilder

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
SIZE, WIDTH = 3, 2


def weights(kind: str, layers: int, ways: int) -> list[Array]:
    """The matrices of every layer and way, then the biases."""
    shapes: list[tuple[int, ...]] = []
    for layer in range(layers):
        width = SIZE * ways if layer else WIDTH
        shapes += ([(SIZE, width)] * GATES[kind] + [(SIZE, SIZE)] * GATES[kind]) * ways
    shapes += [(SIZE,)] * 2 * GATES[kind] * layers * ways
    return [np.float32(0.3) * normal_noise(*shape, seed=place) for place, shape in enumerate(shapes)]


def graph(kind: str, layers: int, ways: int, cut: int = 0, **attributes: Any) -> GraphDefBuilder:
    builder = GraphDefBuilder()
    builder.place("x", -1, 1, WIDTH)
    builder.const("h", np.zeros((layers * ways, 1, SIZE)))
    vector = np.concatenate([array.ravel() for array in weights(kind, layers, ways)])
    builder.const("params", vector[: vector.size - cut])
    way = "bidirectional" if ways == 2 else "unidirectional"
    options = {"T": F32, "rnn_mode": kind, "direction": way} | attributes
    builder.node("rnn", "CudnnRNN", "x", "h", "h", "params", **options)
    builder.node("y", "Identity", "rnn", T=F32)
    return builder


def layer_output(kind: str, x: Array, matrices: list[Array], biases: list[Array]) -> Array:
    """The output of a layer in one direction, gate by gate as cuDNN's documentation has them."""
    count = GATES[kind]
    h, c, frames = np.zeros(SIZE), np.zeros(SIZE), list[Array]()
    for frame in x:
        a = [matrices[gate] @ frame + biases[gate] for gate in range(count)]
        b = [matrices[count + gate] @ h + biases[count + gate] for gate in range(count)]
        if kind == "lstm":
            i, f, new, o = (left + right for left, right in zip(a, b))
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
            h = sigmoid(o) * np.tanh(c)
        elif kind == "gru":
            reset, update = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
            h = (1 - update) * np.tanh(a[2] + reset * b[2]) + update * h
        else:
            h = np.tanh(a[0] + b[0]) if kind == "rnn_tanh" else np.maximum(a[0] + b[0], 0)
        frames.append(h)
    return np.stack(frames)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(("layers", "ways"), [(1, 1), (2, 1), (2, 2)])
def test_layers_give_what_numpy_gives(kind: str, layers: int, ways: int) -> None:
    parts, per_direction = weights(kind, layers, ways), 2 * GATES[kind]
    x = normal_noise(5, 1, WIDTH, seed=99)
    y: Array = x[:, 0]
    for layer in range(layers):
        sides: list[Array] = []
        for way in range(ways):
            place = (layer * ways + way) * per_direction
            weights_here = (
                parts[place : place + per_direction],
                parts[layers * ways * per_direction + place :][:per_direction],
            )
            sides.append(layer_output(kind, y[::-1] if way else y, *weights_here)[:: -1 if way else 1])
        y = np.concatenate(sides, 1)
    typed = pulse.load(graph(kind, layers, ways).data).model.analyse()
    np.testing.assert_allclose(typed.run(x)["y"][:, 0], y, rtol=1e-4, atol=1e-5)
    if ways == 1:
        pulse.verify(typed, pulse=16).require()


@pytest.mark.parametrize("kind", GATES)
def test_the_batch_may_come_first(kind: str) -> None:
    """The batch is first in x, the states and the results; two sequences begin differently, in two layers."""
    x, h = normal_noise(2, 5, WIDTH, seed=99), normal_noise(2, 2, SIZE, seed=98)
    outputs: list[Array] = []
    for major in (True, False):
        builder = GraphDefBuilder()
        builder.place("x", *((-1, 2) if major else (2, -1)), WIDTH)
        builder.const("h", h.transpose(1, 0, 2) if major else h)
        builder.const("params", np.concatenate([array.ravel() for array in weights(kind, 2, 1)]))
        builder.node("rnn", "CudnnRNNV2", "x", "h", "h", "params", T=F32, rnn_mode=kind, time_major=major)
        builder.node("y", "Identity", "rnn", T=F32)
        builder.node("last", "Identity", "rnn:1", T=F32)
        typed = pulse.load(builder.data).model.analyse()
        results = typed.run(x.transpose(1, 0, 2) if major else x)
        outputs += [results[name].transpose(1, 0, 2) if major else results[name] for name in ("y", "last")]
    for first, other in zip(outputs[:2], outputs[2:]):
        np.testing.assert_array_equal(first, other)


def test_weights_that_do_not_fit_are_refused() -> None:
    with pytest.raises(LoadError, match=r"rnn \(CudnnRNN\): its layers need at least \d+ weights, got \d+;"):
        pulse.load(graph("lstm", 1, 1, cut=1).data).model.analyse()


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        (
            {"rnn_mode": "qrnn"},
            "unknown rnn_mode 'qrnn'; choose one of gru, lstm, rnn_tanh, rnn_relu",
        ),
        ({"input_mode": "skip_input"}, "input_mode skip_input is not supported"),
        ({"num_proj": 2}, r"projections \(num_proj\) are not supported"),
    ],
)
def test_what_is_not_supported_is_named(attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(LoadError, match=reason):
        pulse.load(graph("lstm", 1, 1, **attributes).data).model.analyse()
