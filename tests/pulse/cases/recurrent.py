"""Recurrent layers over attributes and opsets."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.pulse.cases.build import Case, Feeds, cases, floats, node

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}

OUTPUTS = {"RNN": "y h", "GRU": "y h", "LSTM": "y h c"}

ACTIVATIONS = ["Sigmoid", "Tanh", "Relu", "Affine", "LeakyRelu", "HardSigmoid", "Elu", "Softsign", "Softplus"]

T, B, I, H = 6, 3, 5, 4


def weights(op: str, directions: int, hidden: int = H, features: int = I) -> Feeds:
    """Input weights, recurrent weights, biases, peepholes."""
    rows = GATES[op] * hidden
    seed = (op, directions, hidden)
    return {
        "w": floats((seed, "w"), directions, rows, features) * 0.6,
        "r": floats((seed, "r"), directions, rows, hidden) * 0.6,
        "b": floats((seed, "b"), directions, 2 * rows) * 0.6,
        "p": floats((seed, "p"), directions, 3 * hidden) * 0.6,
    }


def layer(
    op: str,
    name: str,
    inputs: str = "x w r b",
    outputs: str | None = None,
    feeds: Feeds | None = None,
    opsets: tuple[int, ...] = (7, 14),
    hidden: int = H,
    **attributes: Any,
) -> Iterator[Case]:
    """One layer with time as T, with the batch as T, and without a stream."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    constants = weights(op, directions, hidden)
    fed = {"x": floats("x", T, B, I), **(feeds or {})}
    attributes.setdefault("hidden_size", hidden)
    results = OUTPUTS[op] if outputs is None else outputs
    present = " ".join(name_of_tensor for name_of_tensor in results.split() if name_of_tensor != "_")
    operator = node(op, inputs, results, **attributes)
    forward = attributes.get("direction", "forward") == "forward"
    stream = {"x": 0} if forward else None
    yield from cases(f"{op}_{name}", [operator], fed, constants, opsets, stream, present)
    if "l" not in inputs.split():
        over_batch = {name_of_tensor: 1 for name_of_tensor in ("x", "h0", "c0") if name_of_tensor in fed}
        for case, model, values in cases(
            f"{op}_{name}_batch", [operator], fed, constants, opsets, over_batch, present
        ):
            if not case.endswith("fixed"):
                yield case, model, values


def directions() -> Iterator[Case]:
    """Every direction and every choice of outputs; blocks of 16 hidden units and what is left of them."""
    for op in GATES:
        for direction in ("forward", "reverse", "bidirectional"):
            yield from layer(op, direction, direction=direction, opsets=(7, 14, 22))
            yield from layer(op, f"{direction}_no_bias", "x w r", direction=direction)
        yield from layer(op, "only_h", outputs="_ h")
        yield from layer(op, "only_y", outputs="y")
        for hidden in (1, 16, 21, 33):
            yield from layer(op, f"hidden{hidden}", hidden=hidden, direction="bidirectional", opsets=(14,))


def states() -> Iterator[Case]:
    """Initial states as inputs and as constants; peepholes; some frames of each sequence only."""
    for op in GATES:
        for direction in ("forward", "bidirectional"):
            count = 2 if direction == "bidirectional" else 1
            initial = {"h0": floats("h0", count, B, H)}
            names = "x w r b _ h0"
            if op == "LSTM":
                initial["c0"] = floats("c0", count, B, H)
                yield from layer(
                    op, f"{direction}_h0", names, feeds={"h0": initial["h0"]}, direction=direction
                )
                yield from layer(
                    op,
                    f"{direction}_c0",
                    f"{names[:-3]} _ c0",
                    feeds={"c0": initial["c0"]},
                    direction=direction,
                )
                names += " c0"
            yield from layer(op, f"{direction}_states", names, feeds=initial, direction=direction)
            lengths = np.array([T, 2, 4], np.int32)
            for label, value in (("whole", np.full(B, T, np.int32)), ("part", lengths)):
                operator = node(
                    op, names.replace(" _ ", " l "), OUTPUTS[op], direction=direction, hidden_size=H
                )
                fed = {"x": floats("x", T, B, I), **initial}
                constants = {**weights(op, count), "l": value}
                yield from cases(
                    f"{op}_{direction}_{label}_lengths", [operator], fed, constants, (14,), None, OUTPUTS[op]
                )
    for direction in ("forward", "bidirectional"):
        yield from layer("LSTM", f"{direction}_peepholes", "x w r b _ _ _ p", direction=direction)
    yield from layer("LSTM", "input_forget", "x w r b _ _ _ p", input_forget=1)


def activations() -> Iterator[Case]:
    """Other functions, with and without parameters; limits of their inputs; the two forms of the GRU."""
    for name in ACTIVATIONS:
        parameters: dict[str, Any] = {}
        if name in ("Affine", "LeakyRelu", "HardSigmoid", "Elu"):
            parameters["activation_alpha"] = [0.3]
        if name in ("Affine", "HardSigmoid"):
            parameters["activation_beta"] = [0.2]
        yield from layer("RNN", name, activations=[name], **parameters)
        yield from layer("GRU", name, activations=["Sigmoid", name], linear_before_reset=1, **parameters)
        yield from layer("LSTM", name, activations=["Sigmoid", name, "Tanh"], opsets=(14,), **parameters)
    yield from layer("RNN", "default", activations=["Tanh", "Tanh"])
    yield from layer("RNN", "ThresholdedRelu", activations=["ThresholdedRelu"], activation_alpha=[0.4])
    scaled = {"activation_alpha": [0.7], "activation_beta": [0.9]}
    yield from layer("RNN", "ScaledTanh", activations=["ScaledTanh"], **scaled)
    yield from layer("GRU", "HardSigmoid_gates", activations=["HardSigmoid", "Relu"])
    both = ["HardSigmoid", "Tanh", "LeakyRelu", "Sigmoid", "HardSigmoid", "Tanh"]
    yield from layer(
        "LSTM",
        "two_directions",
        activations=both,
        activation_alpha=[0.25, 0.1, 0.3],
        activation_beta=[0.4, 0.6],
        direction="bidirectional",
    )
    for op in GATES:
        yield from layer(op, "clip", clip=0.4)
    unbounded = ["HardSigmoid", "Affine", "Tanh"]
    limits = {"activation_alpha": [1.0, 4.0], "activation_beta": [0.8, 0.0], "clip": 0.3}
    yield from layer("LSTM", "clip_less_than_c", activations=unbounded, **limits)
    for before in (0, 1):
        for direction in ("forward", "reverse", "bidirectional"):
            yield from layer("GRU", f"{direction}_{before}", linear_before_reset=before, direction=direction)
        yield from layer("GRU", f"clip_{before}", linear_before_reset=before, clip=0.4)


ALL = (directions, states, activations)
