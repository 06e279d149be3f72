"""Scans as streams: the states go on from pulse to pulse."""

import numpy as np
import pytest

import pulse
from pulse.errors import CompileError, PulsifyError
from pulse.program.compiler import compile_model
from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.scan import scan, smoothed
from tests.pulse.ops.test_recurrent import streamed


def test_every_forward_case_streams() -> None:
    ran = 0
    for name, proto, feeds in scan():
        if not name.endswith("-T"):
            continue
        typed = pulse.load(proto).analyse()
        if "backward" in name:
            with pytest.raises(PulsifyError, match="from the last frame to the first"):
                typed.pulsify()
            continue
        wanted = typed.run(feeds)
        for frames in (1, 3):
            pulsed = typed.declutter().pulsify(pulse=frames)
            got = streamed(compile_model(pulsed, "numpy"), feeds)
            for output, expected in wanted.items():
                np.testing.assert_allclose(got[output], expected, 1e-5, 1e-6, err_msg=name)
        with pytest.raises(CompileError, match="use backend='numpy'"):
            pulsed.compile()
        ran += 1
    assert ran == 7


@pytest.mark.parametrize("pads", [[2, 0], [0, 2], [1, 1]])
def test_behind_a_convolution(pads: list[int]) -> None:
    """A lead is in the state before the first pulse; a delay does not touch it."""
    nodes = [
        node("Conv", "x k", "z", pads=pads),
        node("Transpose", "z", "zt", perm=[2, 0, 1]),
        node("Pad", "zt more value", "padded"),
        node("Scan", "s padded", "last y", body=smoothed(), num_scan_inputs=1),
    ]
    constants = {
        "k": floats("k", 3, 2, 3),
        "s": floats("s", 1, 4),
        "w": floats("w", 3, 4),
        "more": np.array([2, 0, 0, 0, 0, 0], np.int64),
        "value": np.float32(0.5),
    }
    for length in (1, 2, 5, 12):
        feeds = {"x": floats(length, 1, 2, length)}
        typed = pulse.load(model(nodes, feeds, constants, 16, {"x": 2}, "y last")).analyse()
        program = compile_model(typed.declutter().pulsify(pulse=2), "numpy")
        for name, got in streamed(program, feeds).items():
            np.testing.assert_allclose(got, typed.run(feeds)[name], 1e-5, 1e-6)


def test_a_stream_on_another_axis_is_refused() -> None:
    made = node("Scan", "s x", "last y", body=smoothed(), num_scan_inputs=1)
    feeds = {"x": floats("x", 7, 2, 3), "s": floats("s", 2, 4)}
    proto = model([made], feeds, {"w": floats("w", 3, 4)}, 16, {"x": 1, "s": 0}, "y")
    with pytest.raises(PulsifyError, match="only frames along the axis"):
        pulse.load(proto).analyse().pulsify()
