"""Choices between two wires: what is not chosen needs no result."""

import numpy as np
import pytest
from onnx import ModelProto

import pulse
from pulse.errors import FaultError
from tests.pulse.cases.build import Feeds, model, node
from tests.pulse.ops.stream_proof import assert_streams


def buckets(threshold: float, feeds: Feeds) -> ModelProto:
    """``where(x > threshold, (log(x) * 3).to(int) + 1, 0)``, and likewise with the other order of the wires."""
    nodes = [
        node("Greater", "x threshold", "far"),
        node("Not", "far", "near"),
        node("Log", "x", "log"),
        node("Mul", "log three", "scaled"),
        node("Cast", "scaled", "whole", to=7),
        node("Add", "whole one", "bucket"),
        node("Where", "far bucket zero", "first"),
        node("Where", "near zero bucket", "second"),
        node("Concat", "first second", "y", axis=1),
    ]
    constants = {
        "threshold": np.float32(threshold),
        "three": np.float32(3),
        "one": np.int64(1),
        "zero": np.int64(0),
    }
    return model(nodes, feeds, constants, 17, {"x": 2})


def test_a_conversion_that_is_not_chosen_is_not_a_fault() -> None:
    """The logarithms of 0 and of negative numbers are no integers."""
    x = np.array([0, 3, -2, 1.5, 0, 90, 0.7, 2], np.float32).reshape(1, 1, 8)
    assert_streams(buckets(0.5, {"x": x}), {"x": x}, 2, 0)


def test_a_conversion_that_is_chosen_is_a_fault() -> None:
    x = np.array([0, 3, -2, 1.5], np.float32).reshape(1, 1, 4)
    typed = pulse.load(buckets(-1.0, {"x": x})).analyse()
    with pytest.raises(FaultError, match="1 value"):
        typed.run({"x": x})
