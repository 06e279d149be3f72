"""The results of an operator, and arrays for it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import pulse
from pulse.facts import Array
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import BOOL, F32, I32, I64, U8, GraphDefBuilder

X = normal_noise(2, 5, 4)
POSITIVE = np.abs(X) + np.float32(0.1)


def results_of_operator(op: str, inputs: Sequence[Any], count: int = 1, **attributes: Any) -> list[Array]:
    """The results of an operator; the first input is fed, the others are constants."""
    builder = GraphDefBuilder()
    arrays = [np.asarray(value) for value in inputs]
    types = {
        np.dtype(np.float32): F32,
        np.dtype(np.int32): I32,
        np.dtype(np.int64): I64,
        np.dtype(np.uint8): U8,
        np.dtype(np.bool_): BOOL,
    }
    names = [builder.place("x", *arrays[0].shape, dtype=types[arrays[0].dtype])]
    names += [builder.const(f"c{place}", array, array.dtype) for place, array in enumerate(arrays[1:])]
    builder.node("y", op, *names, **{"T": types[arrays[0].dtype], **attributes})
    outputs = ["y", *(f"y:{slot}" for slot in range(1, count))]
    for slot, name in enumerate(outputs):
        builder.node(f"out{slot}", "Identity", name, T=F32)
    typed = pulse.load(builder.data).model.analyse()
    results = typed.run({"x": arrays[0]})
    return [results[f"out{slot}"] for slot in range(count)]
