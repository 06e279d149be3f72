"""FireRedVAD: the offline model, pulsed, equals onnxruntime and its authors' streaming twin, without delay."""

import numpy as np
import pytest

import pulse
from pulse.program.compiler import compile_model
from pulse.program.whole_stream import stream_whole
from tests.agreement import Expected
from tests.backends import BACKENDS
from tests.noise import normal_noise
from tests.shared import shared_path

ort = pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pulse_frames", [1, 8, 10])
def test_streamed_agrees_with_offline_and_the_twin(pulse_frames: int, backend: str) -> None:
    path, twin = (
        shared_path("models/fireredvad_stream.onnx"),
        shared_path("models/fireredvad_stream_cached.onnx"),
    )
    typed = pulse.load(path, inputs={"feat": "1,T,80,f32"}).analyse()
    model = typed.declutter().pulsify(pulse=pulse_frames)
    assert all(port.delay == 0 for port in model.outputs)
    x = normal_noise(1, 47, 80, seed=pulse_frames)
    offline = ort.InferenceSession(str(path))
    names = [output.name for output in offline.get_outputs()]
    expected = Expected(typed, {"feat": x})
    expected.assert_near(dict(zip(names, offline.run(None, {"feat": x}))), "onnxruntime")
    cached = ort.InferenceSession(str(twin))
    state = np.zeros((8, 1, 128, 19), np.float32)
    frames = []
    for start in range(0, 47, pulse_frames):
        probs, state = cached.run(None, {"feat": x[:, start : start + pulse_frames], "caches_in": state})
        frames.append(probs)
    outputs = stream_whole(compile_model(model, backend), {"feat": x})
    expected.assert_agrees(outputs, backend)
    np.testing.assert_allclose(outputs["probs"], np.concatenate(frames, 1), rtol=0, atol=1e-6)
