"""The shared real models: streamed equals onnxruntime's offline result, on random and on recorded sound."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
import soundfile

import pulse
from pulse.errors import PulsifyError
from pulse.facts import Array
from pulse.program.compiler import BACKENDS, compile_model
from pulse.program.whole import run_whole
from tests.shared import shared


def offline(name: str) -> Any:
    """A function from feeds to the reference outputs, by name."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(shared("models") / name), options)
    names = [output.name for output in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(None, feeds)))


def speech(frames: int | None = None) -> Array:
    """Noisy speech [1, frames], 16 kHz."""
    return soundfile.read(shared("audio") / "noisy_speech_16k.wav", frames or -1, dtype="float32")[0][None]


def noise(frames: int) -> Array:
    """Quiet noise [1, frames]."""
    return (np.random.default_rng(frames).standard_normal((1, frames)) * 0.1).astype(np.float32)


def assert_equal(got: dict[str, Array], wanted: dict[str, Array], what: str) -> None:
    for name, expected in wanted.items():
        np.testing.assert_allclose(got[name], expected, 1e-4, 1e-5, err_msg=f"{name}, {what}")


@pytest.mark.parametrize("frames", [256, 2048])
def test_swift_f0(frames: int) -> None:
    """Pitch from raw sound: STFT, five convolutions that look ahead, a search over pitches."""
    reference = offline("swift_f0.onnx")
    model = pulse.load(shared("models") / "swift_f0.onnx").analyse().declutter().pulsify(pulse=frames)
    for port in model.outputs:
        assert (port.delay, port.rate) == (12, pytest.approx(1 / 256))
    native = compile_model(model, "numba")
    for sound in (speech(), noise(20_011), noise(1_500), noise(2_304)):
        feeds = {"input_audio": sound}
        got, _ = run_whole(native.spawn(), feeds, np.nan)
        assert_equal(got, reference(feeds), f"{sound.shape[1]} samples")
    feeds = {"input_audio": speech(5_000)}
    for backend in BACKENDS:
        got, _ = run_whole(compile_model(model, backend).spawn(), feeds, np.nan)
        assert_equal(got, reference(feeds), backend)


def test_swift_f0_wants_whole_hops() -> None:
    """The hop of its STFT is 256 samples: other pulses are refused by the node, with those that suit."""
    typed = pulse.load(shared("models") / "swift_f0.onnx").analyse().declutter()
    with pytest.raises(PulsifyError, match=r"STFT.*pulse 500 .* not a multiple of 256: use 256 or 512"):
        typed.pulsify(pulse=500)
