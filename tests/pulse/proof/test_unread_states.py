"""A state whose last value nothing reads is not compared."""

import numpy as np
from onnx.numpy_helper import from_array

import pulse
from tests.pulse.cases.build import floats, model, node


def test_a_count_of_frames_after_a_window_is_equal() -> None:
    """Running means: the count of frames is known before the window is full, and counts on after the last frame."""
    nodes = [
        node("Conv", "x k", "c", strides=[2]),
        node("Shape", "c", "shape"),
        node("ConstantOfShape", "shape", "ones", value=from_array(np.ones(1, np.float32))),
        node("CumSum", "ones time", "counts"),
        node("CumSum", "c time", "sums"),
        node("Div", "sums counts", "y"),
    ]
    constants = {"k": floats("k", 1, 1, 8), "time": np.array(2)}
    proto = model(nodes, {"x": floats("x", 1, 1, 100)}, constants, stream={"x": 2})
    pulse.verify(proto, pulse=2).require()
