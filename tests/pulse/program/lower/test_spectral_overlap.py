"""Inverse transforms whose frames overlap: each frame is transformed once, and streams equal the offline model."""

import numpy as np
import pytest
from onnx import ModelProto, NodeProto

import pulse
from pulse.graph import OutletId
from pulse.ops.time import Delay
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from tests.pulse.cases.build import floats, model, node

LENGTH, BINS, FRAMES = 256, 129, 40


WINDOW = np.hanning(LENGTH + 2)[1:-1]


def inverse_kernel(window: np.ndarray) -> np.ndarray:
    """[2 * BINS, 1, LENGTH]: the weights of each real part, then of each imaginary one, under a window."""
    turns = 2 * np.pi * np.outer(np.arange(BINS), np.arange(LENGTH)) / LENGTH
    weights = np.concatenate([np.cos(turns), -np.sin(turns)]) * window / LENGTH
    return weights[:, None].astype(np.float32)


def inverse(
    hop: int,
    *nodes: NodeProto,
    source: str = "x",
    bias: float = 0.0,
    pads: tuple[int, int] = (0, 0),
    window: np.ndarray = WINDOW,
) -> ModelProto:
    """``nodes``, then the inverse transform of ``source`` to ``y``."""
    back = node("ConvTranspose", f"{source} k b", strides=[hop], pads=list(pads))
    constants = {
        "k": inverse_kernel(window),
        "b": np.full(1, bias, np.float32),
        "two": np.float32(2),
        "start": np.array([0, 0, 1, 0, 0, 0], np.int64),
    }
    return model([*nodes, back], {"x": floats("x", 1, 2 * BINS, FRAMES)}, constants, stream={"x": 2})


def kernels(program: Program) -> list[str]:
    """The kernels of a program, in order."""
    return [row.kernel for row in program.notes]


QUICK = {(32, 8), (64, 1), (64, 3), (100, 3), (128, 1)}
"""Hops and pulses that the default suite tries."""


@pytest.mark.parametrize(
    ("hop", "pulse_frames"),
    [
        pytest.param(hop, frames, marks=[] if (hop, frames) in QUICK else [pytest.mark.slow])
        for hop in (32, 64, 100, 128)
        for frames in (1, 3, 8)
    ],
)
def test_each_frame_is_transformed_once(hop: int, pulse_frames: int) -> None:
    proto = inverse(hop)
    names = kernels(pulse.stream(proto, pulse=pulse_frames))
    assert names.count("fourier") == names.count("pool") == 1
    assert "product" not in names
    pulse.verify(proto, pulse=pulse_frames).require()


@pytest.mark.parametrize(
    ("zeros", "hop", "pulse_frames"),
    [((1, 0), 128, 5), ((1, 1), 100, 8), ((37, 0), 64, 8), ((28, 60), 64, 5)],
)
def test_windows_may_begin_and_end_with_zeros(zeros: tuple[int, int], hop: int, pulse_frames: int) -> None:
    """The kernel of a stream has no such taps, so its first column is not the first point of the transform."""
    window = np.pad(np.hanning(LENGTH - sum(zeros) + 2)[1:-1], zeros)
    proto = inverse(hop, window=window)
    names = kernels(pulse.stream(proto, pulse=pulse_frames))
    assert names.count("fourier") == names.count("pool") == 1
    assert "product" not in names
    pulse.verify(proto, pulse=pulse_frames).require()


@pytest.mark.parametrize("pads", [(128, 128), (192, 64), (0, 37)])
def test_streams_may_begin_and_end_inside_of_a_frame(pads: tuple[int, int]) -> None:
    proto = inverse(64, pads=pads)
    assert "pool" in kernels(pulse.stream(proto, pulse=4))
    pulse.verify(proto, pulse=4).require()


def test_frames_known_in_advance_are_transformed_too() -> None:
    padded = node("Pad", "x start two", "padded")
    proto = inverse(64, padded, source="padded", pads=(64, 0))
    program = pulse.stream(proto, pulse=2)
    assert "pool" in kernels(program)
    known = [node.op.initial for node in program.nodes if isinstance(node.op, Delay)]
    assert any((initial == 2).any() for initial in known)
    pulse.verify(proto, pulse=2).require()


def test_a_step_after_the_transform_reads_its_sums() -> None:
    gate = node("Mul", "y two", "louder")
    proto = inverse(64)
    proto.graph.node.append(gate)
    proto.graph.output[0].name = "louder"
    names = kernels(pulse.stream(proto, pulse=4))
    assert names.count("fourier") == names.count("pool") == 1
    pulse.verify(proto, pulse=4).require()


def test_streams_agree_alone_in_lanes_and_after_a_snapshot() -> None:
    program = pulse.stream(inverse(64), pulse=2)
    lanes, states = program.spawn_many(18), [program.spawn() for _ in range(18)]
    for step in range(6):
        x = floats(f"x{step}", 18, 1, 2 * BINS, 2)
        if step == 3:
            states[0].restore(states[0].snapshot())
        for together, frames, state in zip(lanes.step(x)["y"], x, states):
            np.testing.assert_allclose(together, state.step(frames)["y"], rtol=0, atol=2e-6)


@pytest.mark.parametrize("reason", ["bias", "int8", "inner wire"])
def test_other_convolutions_keep_their_window_of_frames(reason: str) -> None:
    proto = inverse(64, bias=1.0 if reason == "bias" else 0.0)
    model_in_pulses = pulse.load(proto).pulsify(2)
    graph = model_in_pulses.graph
    fetched = [OutletId(node.id) for node in graph.nodes if isinstance(node.op, Delay)]
    program = (
        compile_model(model_in_pulses, fetches=fetched)
        if reason == "inner wire"
        else model_in_pulses.compile(weights="int8" if reason == "int8" else None)
    )
    expected = model_in_pulses.compile("numpy", weights="int8" if reason == "int8" else None)
    assert "pool" not in kernels(program)
    one, other = program.spawn(), expected.spawn()
    for step in range(6):
        x = floats(step, 1, 2 * BINS, 2)
        ours, theirs = one.step(x), other.step(x)
        for name in theirs:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=5e-6)
