"""LiteRT, as the reference: a fresh interpreter for each run, since its variables cannot be reset."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pulse.facts import Array

FLOATS = 1e-5
"""Tolerance between two runtimes in f32, relative to the largest value."""


def calls(data: bytes, feeds: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """The outputs of each call of one interpreter; skips the test where LiteRT is missing."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    module: Any = pytest.importorskip("ai_edge_litert.interpreter", reason="pip install ai-edge-litert")
    interpreter = module.Interpreter(model_content=data, num_threads=1)
    for detail, value in zip(interpreter.get_input_details(), feeds[0], strict=True):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    results: list[list[Array]] = []
    for call in feeds:
        for detail, value in zip(interpreter.get_input_details(), call, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        results.append(
            [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
        )
    return results


@dataclass(frozen=True)
class PortScale:
    """The meaning of the codes of a port: ``scale * (code - zero)``."""

    scale: float
    zero: int


def scales(data: bytes) -> tuple[list[PortScale], list[PortScale]]:
    """The details of the inputs and the outputs; skips the test where LiteRT is missing."""
    module: Any = pytest.importorskip("ai_edge_litert.interpreter", reason="pip install ai-edge-litert")
    interpreter = module.Interpreter(model_content=data, num_threads=1)
    ports = interpreter.get_input_details(), interpreter.get_output_details()
    pairs = [
        [PortScale(float(detail["quantization"][0]), int(detail["quantization"][1])) for detail in side]
        for side in ports
    ]
    return pairs[0], pairs[1]


def assert_agrees_with_litert(output: Array, expected: Array, context: str, max_steps: int = 1) -> int:
    """Floats to ``FLOATS``, codes within a step; how many codes differ."""
    assert output.shape == expected.shape, context
    assert output.dtype == expected.dtype, context
    if output.dtype.kind == "f":
        largest = max(float(np.abs(expected).max(initial=0)), 1e-30)
        assert np.abs(output - expected).max(initial=0) <= FLOATS * largest, context
        return 0
    apart = np.abs(output.astype(np.int64) - expected.astype(np.int64))
    assert apart.max(initial=0) <= (max_steps if output.dtype.itemsize <= 2 else 0), context
    return int((apart != 0).sum())
