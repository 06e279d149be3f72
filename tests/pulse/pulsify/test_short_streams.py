"""Streams that are shorter than a window: the offline model and the stream refuse the same lengths."""

import numpy as np
import onnx
import pytest

import pulse
from pulse.errors import InputError
from pulse.support.wording import count_of
from streaming import Session
from tests.pulse.cases.build import floats, model, node

KERNEL = 3


def after_a_window(last: onnx.NodeProto) -> onnx.ModelProto:
    """A pool of three frames without padding, then a node that adds frames."""
    pool = node("MaxPool", "x", "p", kernel_shape=[KERNEL])
    constants = {"pads": np.array([0, 0, 2, 0, 0, 1]), "k": floats("k", 1, 2, 2), "w": floats("w", 2, 2, 1)}
    return model([pool, last], {"x": floats("x", 1, 2, 9)}, constants, stream={"x": 2})


@pytest.mark.parametrize(
    "last",
    [
        node("Pad", "p pads", "y"),
        node("Concat", "k p", "y", axis=2),
        node("Conv", "p w", "y", pads=[0, 2]),
        node("AveragePool", "p", "y", kernel_shape=[2], pads=[1, 0]),
    ],
    ids=["padded", "joined", "convolved", "pooled"],
)
def test_the_stream_refuses_the_lengths_that_offline_does(last: onnx.NodeProto) -> None:
    proto = after_a_window(last)
    typed, program = pulse.load(proto).analyse(), pulse.stream(proto, pulse=1)
    for frames in range(KERNEL - 1):
        x = np.ones((1, 2, frames), np.float32)
        with pytest.raises(InputError, match=rf"T={frames} does not satisfy"):
            typed.run({"x": x})
        session = Session(program)
        session.push(x)
        with pytest.raises(InputError, match=f"a stream of {count_of(frames, 'frame')} "):
            session.flush()
    pulse.verify(proto, pulse=2, lengths=range(KERNEL - 1, 9)).require()


def test_lengths_after_many_mirrors_stay_in_closed_form() -> None:
    """Twelve mirrored paddings, a strided convolution after each."""
    nodes: list[onnx.NodeProto] = []
    source = "x"
    for depth in range(12):
        target = "y" if depth == 11 else f"c{depth}"
        nodes += [
            node("Pad", f"{source} ends", f"p{depth}", mode="reflect"),
            node("Conv", f"p{depth} k", target, strides=[2]),
        ]
        source = target
    constants = {"ends": np.array([0, 0, 1, 0, 0, 1]), "k": floats("k", 1, 1, 4)}
    proto = model(nodes, {"x": floats("x", 1, 1, 1 << 14)}, constants, stream={"x": 2})
    typed = pulse.load(proto).analyse()
    assert len(str(typed.outputs["y"])) < 200
    pulsed = typed.declutter().pulsify()
    assert pulsed.pulse == 1 << 12
