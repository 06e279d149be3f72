"""Fourier transforms on streams: delays, pulses, and refusals."""

import numpy as np
import pytest

from pulse.api import verify
from pulse.errors import PulsifyError
from pulse.loading.onnx_files import read_onnx
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
    return read_onnx(model(nodes, SIGNAL, constants, stream={"x": 1})).analyse().declutter()


@pytest.mark.parametrize(("mode", "max_delay"), [(None, 3), ("constant", 1), ("reflect", 5)])
@pytest.mark.parametrize("pulse", [16, 48])
def test_frames_stream_exactly(mode: str | None, max_delay: int, pulse: int) -> None:
    """A frame without padding waits for its last sample; padding at the start saves half a frame."""
    typed = stft(16, 64, mode)
    report = verify(typed, pulse=pulse)
    assert report.equal, report.divergence
    assert report.model.outputs[0].delay <= max_delay
    assert report.model.outputs[0].rate.denominator == 16


def test_a_pulse_that_the_hop_does_not_divide_is_refused() -> None:
    with pytest.raises(PulsifyError, match=r"y\.frames.*pulse 100.*multiple of 16: use 96 or 112"):
        stft(16, 64).pulsify(pulse=100)


@pytest.mark.parametrize("attributes", [{}, {"onesided": 1}], ids=["two-sided", "one-sided"])
def test_a_transform_over_time_is_refused_with_a_hint(attributes: dict[str, int]) -> None:
    typed = read_onnx(model([node("DFT", "x", **attributes)], SIGNAL, stream={"x": 1})).analyse()
    with pytest.raises(PulsifyError, match=r"y \(Dft.*\), stream axis 1: whole: .*STFT"):
        typed.pulsify()


def test_transforms_are_products() -> None:
    """They stream and compile with what convolutions and products have."""
    assert any(isinstance(entry.op, Conv) for entry in stft(16, 64).graph.nodes)
    x = {"x": floats("dft", 1, 9, 8, 2)}
    typed = read_onnx(model([node("DFT", "x", axis=2)], x, stream={"x": 1})).analyse()
    assert any(isinstance(entry.op, MatMul) for entry in typed.graph.nodes)
    assert verify(typed, pulse=2).equal
