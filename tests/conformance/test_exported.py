"""Real models as files: onnxruntime, fed pulse by pulse, gives what our own sessions give over recorded sound."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import soundfile
from onnx import ModelProto

import pulse
from bench.models import FEATURES, tcn
from pulse.facts import Array
from pulse.models import TypedModel
from pulse.program.program import Program
from pulse.program.whole_stream import stream_whole
from pulse.runtimes.onnx_runtimes import RuntimeProgram
from streaming.builtin import model_path, noisy_path
from tests.agreement import assert_close
from tests.pulse.onnx.write.file_proof import read_metadata, reopen
from tests.shared import SHARED_FOLDER, shared_path

MAX_DIFFERENCE = 1e-5
"""Relative to the largest value of an output."""
FRAMES = 203


@cache
def speech() -> Array:
    """Noisy speech, 16 kHz: of the shared material, else the built-in recording."""
    path = SHARED_FOLDER / "audio" / "noisy_speech_16k.wav"
    return soundfile.read(path if path.exists() else noisy_path(), dtype="float32")[0]


def spectrum(window: int, bins: int, frames: int) -> Array:
    """Short Fourier transforms of the speech, complex [frames, bins], hop half a window."""
    sound, hop = speech(), window // 2
    starts = np.arange(frames) * hop % (len(sound) - window)
    pieces = np.stack([sound[start : start + window] for start in starts]) * np.hanning(window)
    return np.fft.rfft(pieces, axis=1)[:, :bins]


def bands(frames: int, count: int) -> Array:
    """The logarithm of the power of the speech in bands, [frames, count] f32, about normal."""
    power = np.log(
        np.abs(spectrum(512, 4 * ((256 // count) or 1) * count // 4, frames)[:, :count]) ** 2 + 1e-6
    )
    return ((power - power.mean()) / power.std()).astype(np.float32)


def denoiser() -> tuple[TypedModel, dict[str, Array]]:
    return pulse.load(model_path()).analyse(), {"audio": speech()[None, :40_011]}


def network() -> tuple[TypedModel, dict[str, Array]]:
    return pulse.load(tcn()).analyse(), {"x": np.ascontiguousarray(bands(FRAMES, FEATURES).T)[None]}


def gtcrn() -> tuple[TypedModel, dict[str, Array]]:
    mix = spectrum(512, 257, FRAMES)
    parts = np.stack([mix.real.T, mix.imag.T], -1)[None].astype(np.float32)
    return pulse.load(shared_path("models") / "gtcrn_offline.onnx").analyse(), {"mix": parts}


def fireredvad() -> tuple[TypedModel, dict[str, Array]]:
    path = shared_path("models") / "fireredvad_stream.onnx"
    return pulse.load(path, inputs={"feat": "1,T,80,f32"}).analyse(), {"feat": bands(FRAMES, 80)[None]}


def swift_f0() -> tuple[TypedModel, dict[str, Array]]:
    return pulse.load(shared_path("models") / "swift_f0.onnx").analyse(), {
        "input_audio": speech()[None, :40_011]
    }


def assert_outputs_near(outputs: dict[str, Array], expected_outputs: dict[str, Array]) -> None:
    assert outputs.keys() == expected_outputs.keys()
    for name, expected in expected_outputs.items():
        assert_close(outputs[name], expected, share=MAX_DIFFERENCE, context=name)


@pytest.mark.parametrize(
    ("model", "frames"),
    [
        (denoiser, 160),
        (denoiser, 480),
        (network, 1),
        (network, 8),
        (gtcrn, 1),
        (gtcrn, 4),
        (fireredvad, 1),
        (fireredvad, 10),
        (swift_f0, 256),
    ],
)
def test_a_runtime_agrees_with_our_session(
    model: Callable[[], tuple[TypedModel, dict[str, Array]]], frames: int
) -> None:
    """Flush included, the padding of the last pulse NaN; the file read back gives it too."""
    typed, feeds = model()
    pulsed = typed.declutter().pulsify(pulse=frames)
    proto: ModelProto = pulsed.to_onnx()
    expected = stream_whole(pulsed.compile(), feeds)
    program: Program = RuntimeProgram(pulsed, proto)
    assert program.backend.startswith("onnxruntime")
    assert_outputs_near(stream_whole(program, feeds), expected)
    assert_outputs_near(stream_whole(reopen(proto).compile(), feeds), expected)


def test_a_causal_model_needs_no_time() -> None:
    """The bench network: states only, as one would write them by hand."""
    typed, _ = network()
    proto = typed.declutter().pulsify(pulse=1).to_onnx()
    metadata = read_metadata(proto)
    assert metadata.end is None
    assert len(metadata.states) == 24
    assert all(state.input.endswith(".state") for state in metadata.states)
    assert {node.op_type for node in proto.graph.node} == {
        "Concat", "Slice", "Conv", "Tanh", "Sigmoid", "Mul", "Add", "Relu",
    }  # fmt: skip
