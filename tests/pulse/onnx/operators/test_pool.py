"""Maxima of one after the other window: a remainder counts as in onnxruntime, and does not prevent a stream."""

from itertools import pairwise

import numpy as np
import pytest

import pulse
from tests.onnxruntime_sessions import open_session
from tests.pulse.cases.build import floats, model, node

NAMES = ("x", "a", "b", "c", "y")


@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (3, 3), (3, 2), (4, 2), (2, 3)], ids=str)
def test_four_layers_without_padding_stream(kernel: int, stride: int) -> None:
    pools = [
        node("MaxPool", source, target, kernel_shape=[kernel], strides=[stride])
        for source, target in pairwise(NAMES)
    ]
    proto = model(pools, {"x": floats("x", 1, 1, 600)}, stream={"x": 2})
    typed = pulse.load(proto).analyse()
    session = open_session(proto)
    for frames in range(1 if kernel <= stride else 30, 90):  # onnxruntime refuses empty inputs
        x = floats("x", 1, 1, frames)
        np.testing.assert_array_equal(typed.run({"x": x})["y"], session.run(None, {"x": x})[0])
    pulse.verify(proto, pulse=stride**4, lengths=[1, 7, 100]).require()
