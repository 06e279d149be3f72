"""Scans as streams: the states continue from pulse to pulse."""

import numpy as np
import pytest

import pulse
from pulse.errors import CompileError, PulsifyError
from pulse.ops.scan import ScanStream
from pulse.program.compiler import compile_model
from pulse.program.lower.scan import MAX_INSTRUCTIONS
from pulse.program.native.native_program import NativeProgram
from pulse.program.whole_stream import stream_whole
from tests.agreement import Expected
from tests.backends import BACKENDS
from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.scan import scan, smoothing_body
from tests.pulse.ops.stream_proof import assert_streams

REFUSED = {"backward": "from the last frame to the first", "batch": "along the axis that it runs over"}
"""Cases that do not stream, by a part of their names, and why."""


def test_every_forward_case_streams() -> None:
    ran = 0
    for name, proto, feeds in scan():
        if not name.endswith("-T"):
            continue
        typed = pulse.load(proto).analyse()
        refused = [reason for part, reason in REFUSED.items() if part in name]
        if refused:
            with pytest.raises(PulsifyError, match=refused[0]):
                typed.pulsify()
            continue
        expected = Expected(typed, feeds)
        for frames in (1, 3, 8):
            pulsed = typed.declutter().pulsify(pulse=frames)
            for backend in BACKENDS:
                expected.assert_agrees(stream_whole(compile_model(pulsed, backend), feeds), (name, backend))
        ran += 1
    assert ran == 9


@pytest.mark.parametrize("pulse_frames", [1, 2, 5])
@pytest.mark.parametrize("pads", [[2, 0], [0, 2], [1, 1]])
@pytest.mark.parametrize("length", [1, 2, 5, 12])
def test_a_scan_after_a_convolution_streams_as_offline(
    pads: list[int], pulse_frames: int, length: int
) -> None:
    """A prefix is in the state before the first pulse; a delay does not touch it."""
    nodes = [
        node("Conv", "x k", "z", pads=pads),
        node("Transpose", "z", "zt", perm=[2, 0, 1]),
        node("Pad", "zt more value", "padded"),
        node("Scan", "s padded", "last y", body=smoothing_body(), num_scan_inputs=1),
    ]
    constants = {
        "k": floats("k", 3, 2, 3),
        "s": floats("s", 1, 4),
        "w": floats("w", 3, 4),
        "more": np.array([2, 0, 0, 0, 0, 0], np.int64),
        "value": np.float32(0.5),
    }
    feeds = {"x": floats(length, 1, 2, length)}
    typed = pulse.load(model(nodes, feeds, constants, 16, {"x": 2}, "y last")).analyse()
    expected = Expected(typed, feeds)
    pulsed = typed.declutter().pulsify(pulse=pulse_frames)
    for backend in BACKENDS:
        expected.assert_agrees(stream_whole(compile_model(pulsed, backend), feeds), backend)


@pytest.mark.parametrize(("length", "pulse_frames"), [(1, 3), (2, 1), (9, 2), (9, 4)])
def test_a_scan_between_delays_streams_as_offline(length: int, pulse_frames: int) -> None:
    """The frames of a pulse that do not belong to the stream yet come before its first frame."""
    nodes = [
        node("Transpose", "x", "xt", perm=[1, 2, 0]),
        node("Conv", "xt k", "c", pads=[0, 3]),
        node("Transpose", "c", "z", perm=[2, 0, 1]),
        node("Scan", "s z", "last y", body=smoothing_body(), num_scan_inputs=1),
        node("Transpose", "y", "yt", perm=[1, 2, 0]),
        node("Conv", "yt k2", "u", pads=[1, 1]),
    ]
    constants = {"k": floats("k", 3, 3, 4), "k2": floats("k2", 2, 4, 3), "w": floats("w", 3, 4)}
    feeds = {"x": floats(length, length, 1, 3)}
    around = {**constants, "s": floats("s", 1, 4)}
    assert_streams(model(nodes, feeds, around, 16, {"x": 0}, "u last"), feeds, pulse_frames)


def test_a_deferred_function_is_captured() -> None:
    """The values that the body reads around it are stored before it runs."""
    nodes = [
        node("Exp", "v", "e"),
        node("Neg", "e", "w"),
        node("Scan", "s x", "last y", body=smoothing_body(), num_scan_inputs=1),
    ]
    feeds = {"x": floats("x", 7, 2, 3), "v": floats("v", 3, 4)}
    assert_streams(model(nodes, feeds, {"s": floats("s", 2, 4)}, 16, {"x": 0}, "y last"), feeds, 2)


def test_the_profile_names_the_nodes_of_the_body() -> None:
    operator = node("Scan", "s x", "last y", body=smoothing_body(), num_scan_inputs=1)
    feeds = {"x": floats("x", 7, 2, 3)}
    proto = model([operator], feeds, {"s": floats("s", 2, 4), "w": floats("w", 3, 4)}, 16, {"x": 0}, "y")
    pulsed = pulse.load(proto).analyse().pulsify(pulse=2)
    program = NativeProgram(pulsed)
    (name,) = (node.name for node in pulsed.graph.nodes if isinstance(node.op, ScanStream))
    inside = [row.node for row in program.instructions if row.node.startswith(f"{name}/")]
    assert len(inside) == 2 * len(set(inside)) > 0
    assert sum(row.kernel == "keep_frame" for row in program.instructions) == 2


def test_too_many_frames_are_refused() -> None:
    operator = node("Scan", "s x", "last y", body=smoothing_body(), num_scan_inputs=1)
    feeds = {"x": floats("x", MAX_INSTRUCTIONS, 2, 3)}
    proto = model([operator], feeds, {"s": floats("s", 2, 4), "w": floats("w", 3, 4)}, 16, {"x": 0}, "y")
    pulsed = pulse.load(proto).analyse().pulsify(pulse=MAX_INSTRUCTIONS)
    with pytest.raises(CompileError, match='take fewer frames, or use backend="numpy"'):
        pulsed.compile()


def test_a_stream_on_another_axis_is_refused() -> None:
    operator = node("Scan", "s x", "last y", body=smoothing_body(), num_scan_inputs=1)
    feeds = {"x": floats("x", 7, 2, 3), "s": floats("s", 2, 4)}
    proto = model([operator], feeds, {"w": floats("w", 3, 4)}, 16, {"x": 1, "s": 0}, "y")
    with pytest.raises(PulsifyError, match="only frames along the axis"):
        pulse.load(proto).analyse().pulsify()
