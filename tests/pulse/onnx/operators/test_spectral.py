"""Fourier transforms on streams: delays, pulses, refusals; what the readers of this family refuse."""

from typing import Any

import numpy as np
import pytest

from pulse.api import verify
from pulse.errors import FactError, LoadError, PulsifyError
from pulse.loading.format import read_onnx as load
from pulse.models import TypedModel
from pulse.ops.conv import Conv
from pulse.ops.matmul import MatMul
from tests.pulse.cases.build import floats, model, node

SIGNAL = {"x": np.zeros((1, 640, 1), np.float32)}


def stft(hop: int, size: int, mode: str | None = None) -> TypedModel:
    """Frames of a signal [1, T, 1], perhaps padded by half a frame at both ends."""
    half = size // 2
    constants = {
        "hop": np.int64(hop),
        "w": np.hanning(size).astype(np.float32),
        "pads": np.array([0, half, 0, 0, half, 0]),
    }
    nodes = [node("STFT", "x hop w")]
    if mode is not None:
        nodes = [node("Pad", "x pads", "padded", mode=mode), node("STFT", "padded hop w")]
    return load(model(nodes, SIGNAL, constants, stream={"x": 1})).analyse().declutter()


@pytest.mark.parametrize(("mode", "most"), [(None, 3), ("constant", 1), ("reflect", 5)])
@pytest.mark.parametrize("pulse", [16, 48])
def test_frames_stream_exactly(mode: str | None, most: int, pulse: int) -> None:
    """Without padding a frame waits for its last sample; padding in front makes up for half a frame."""
    typed = stft(16, 64, mode)
    report = verify(typed, pulse=pulse)
    assert report.equal, report.divergence
    assert report.model.outputs[0].delay <= most
    assert report.model.outputs[0].rate.denominator == 16


def test_a_pulse_that_the_hop_does_not_divide_is_refused() -> None:
    with pytest.raises(PulsifyError, match=r"y\.frames.*pulse 100.*multiple of 16: use 96 or 112"):
        stft(16, 64).pulsify(pulse=100)


@pytest.mark.parametrize("attributes", [{}, {"onesided": 1}], ids=["two-sided", "one-sided"])
def test_a_transform_over_time_is_refused_with_a_hint(attributes: dict[str, int]) -> None:
    typed = load(model([node("DFT", "x", **attributes)], SIGNAL, stream={"x": 1})).analyse()
    with pytest.raises(PulsifyError, match=r"y \(Dft.*\), stream axis 1: whole: .*STFT"):
        typed.pulsify()


def test_transforms_are_products() -> None:
    """They stream and compile with what convolutions and products have."""
    assert any(isinstance(entry.op, Conv) for entry in stft(16, 64).graph.nodes)
    x = {"x": floats("dft", 1, 9, 8, 2)}
    typed = load(model([node("DFT", "x", axis=2)], x, stream={"x": 1})).analyse()
    assert any(isinstance(entry.op, MatMul) for entry in typed.graph.nodes)
    assert verify(typed, pulse=2).equal


@pytest.mark.parametrize("op", ["InstanceNormalization", "GroupNormalization"])
def test_statistics_over_time_are_refused_by_the_name_of_the_node(op: str) -> None:
    x, gains = {"x": floats("norm", 1, 4, 9)}, {"g": np.ones(4, np.float32)}
    attributes = {"num_groups": 2} if op == "GroupNormalization" else {}
    typed = load(model([node(op, "x g g", **attributes)], x, gains, 21, {"x": 2})).analyse()
    with pytest.raises(PulsifyError, match=r"y\.normalised.*mean and variance over time.*running statistics"):
        typed.declutter().pulsify()


def refusal_of(operator: Any, constants: dict[str, Any], opset: int = 18) -> str:
    """The message with which a node on x [1, 4, 9, 6] is refused."""
    with pytest.raises((LoadError, FactError)) as caught:
        load(model([operator], {"x": floats("refused", 1, 4, 9, 6)}, constants, opset)).analyse()
    message = str(caught.value)
    assert message.startswith("y")
    return message


def test_unsupported_transforms_are_refused() -> None:
    scales = {"s": np.array([1, 1, 2, 1], np.float32), "r": np.zeros(0, np.float32)}
    assert "'spline' is not supported; nearest, linear and cubic" in refusal_of(
        node("Resize", "x r s", mode="spline"), scales
    )
    assert "region of interest must be 8 numbers" in refusal_of(
        node("Resize", "x r s", coordinate_transformation_mode="tf_crop_and_resize"), scales
    )
    assert "'wrong' is not supported; asymmetric" in refusal_of(
        node("Resize", "x r s", coordinate_transformation_mode="wrong"), scales
    )
    assert "is not stretch, not_larger or not_smaller" in refusal_of(
        node("Resize", "x _ _ z", keep_aspect_ratio_policy="wrong"), {"z": np.array([1, 4, 9, 9])}
    )
    assert "give one of the two" in refusal_of(node("Resize", "x"), {})
    assert "do not divide by" in refusal_of(node("DepthToSpace", "x", blocksize=3), {})
    assert "has fewer" in refusal_of(node("TopK", "x k", axis=1), {"k": np.array([5])})
    assert "p 3 is not supported" in refusal_of(node("LpNormalization", "x", p=3), {})
    assert "must be [batch, time, 1]" in refusal_of(node("STFT", "x k"), {"k": np.int64(4)})
