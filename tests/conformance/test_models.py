"""The shared real models: streamed equals onnxruntime's offline result, on random and on recorded sound."""

from typing import Any

import pytest
import soundfile

import pulse
from pulse.errors import PulsifyError
from pulse.facts import Array
from pulse.program.compiler import compile_model
from pulse.program.whole_stream import stream_whole
from tests.agreement import Expected
from tests.backends import BACKENDS
from tests.noise import quiet_noise
from tests.onnxruntime_sessions import open_session
from tests.shared import shared_path


def offline(name: str) -> Any:
    """A function from feeds to the reference outputs, by name."""
    session = open_session(shared_path("models") / name)
    names = [output.name for output in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(None, feeds)))


def speech(frames: int | None = None) -> Array:
    """Noisy speech [1, frames], 16 kHz."""
    return soundfile.read(shared_path("audio") / "noisy_speech_16k.wav", frames or -1, dtype="float32")[0][
        None
    ]


@pytest.mark.parametrize("frames", [256, 2048])
def test_swift_f0_streams_as_offline(frames: int) -> None:
    """Pitch from raw sound: STFT, five convolutions that look ahead, a search over pitches."""
    reference = offline("swift_f0.onnx")
    typed = pulse.load(shared_path("models") / "swift_f0.onnx").analyse()
    model = typed.declutter().pulsify(pulse=frames)
    for port in model.outputs:
        assert (port.delay, port.rate) == (12, pytest.approx(1 / 256))
    native = compile_model(model, "numba")
    for sound in (speech(12_001), quiet_noise(1_500)[None], quiet_noise(2_304)[None]):
        feeds = {"input_audio": sound}
        expected = Expected(typed, feeds)
        expected.assert_near(reference(feeds), f"onnxruntime, {sound.shape[1]} samples")
        expected.assert_agrees(stream_whole(native, feeds), f"{sound.shape[1]} samples")
    feeds = {"input_audio": speech(5_000)}
    expected = Expected(typed, feeds)
    for backend in BACKENDS:
        expected.assert_agrees(stream_whole(compile_model(model, backend), feeds), backend)


def test_swift_f0_needs_whole_hops() -> None:
    """The hop of its STFT is 256 samples: other pulses are refused by the node, with those that suit."""
    typed = pulse.load(shared_path("models") / "swift_f0.onnx").analyse().declutter()
    with pytest.raises(PulsifyError, match=r"STFT.*pulse 500 .* not a multiple of 256: use 256 or 512"):
        typed.pulsify(pulse=500)
