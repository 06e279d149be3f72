"""The built-in voice detector: reproducible, causal, exact in pulses, and really a detector of voice."""

from functools import partial

import numpy as np
import onnxruntime
import pytest
import soundfile

import pulse
from pulse.facts import Array
from streaming import Session
from streaming.builtin import clean_path, noisy_path, voice_path
from tests.shared import shared_path
from tests.streaming.builtin.assets.outputs import output_of

FRAME = 160
detect = partial(output_of, voice_path())


def area_under_curve(scores: Array, truth: Array) -> float:
    """The share of pairs in which a frame with voice scores higher than a frame without."""
    ranks = np.argsort(np.argsort(scores, kind="stable")) + 1
    with_voice, without = truth.sum(), (~truth).sum()
    return (ranks[truth].sum() - with_voice * (with_voice + 1) / 2) / (with_voice * without)


def silero(x: Array) -> Array:
    """The probabilities of Silero's detector, one for every 512 samples."""
    session = onnxruntime.InferenceSession(shared_path("models/silero_vad_16k_static.onnx"))
    state, context, probabilities = np.zeros((2, 1, 128), np.float32), np.zeros(64, np.float32), []
    for start in range(0, len(x) - 511, 512):
        samples = np.concatenate([context, x[start : start + 512]])[None]
        probability, state = session.run(None, {"input": samples, "state": state})
        context = x[start + 448 : start + 512]
        probabilities.append(probability.item())
    return np.array(probabilities)


def test_the_file_is_small() -> None:
    assert voice_path().stat().st_size < 500_000


def test_the_detector_finds_the_voice_in_the_built_in_sound() -> None:
    clean, noisy = soundfile.read(clean_path())[0], soundfile.read(noisy_path())[0]
    frames = len(clean) // FRAME
    power = np.mean(clean[: frames * FRAME].reshape(frames, FRAME) ** 2, axis=1)
    truth, is_voice = power > 10**-4.5, detect(noisy)[:frames]
    assert 0.4 < truth.mean() < 0.7
    assert area_under_curve(is_voice, truth) > 0.94
    assert np.mean((is_voice > 0.5) == truth) > 0.8


def test_the_detector_finds_the_voice_in_real_noise() -> None:
    x, rate_hz = soundfile.read(shared_path("audio/noisy_speech_16k.wav"), dtype="float32")
    assert rate_hz == 16_000
    reference, probabilities = silero(x), detect(x)
    middles = np.arange(len(reference)) * 512 + 256
    truth = np.interp((np.arange(len(probabilities)) + 0.5) * FRAME, middles, reference) > 0.5
    assert area_under_curve(probabilities, truth) > 0.9
    assert np.mean((probabilities > 0.5) == truth) > 0.85


@pytest.mark.parametrize("level", [1e-4, 1e-3, 1e-2, 1e-1])
def test_noise_of_any_level_is_not_voice(level: float) -> None:
    probabilities = detect(np.random.default_rng(0).normal(0, level, 16_000 * 10))
    assert probabilities.max() < 0.5
    assert np.median(probabilities) < 0.2


def test_silence_is_not_voice() -> None:
    assert detect(np.zeros(16_000)).max() < 0.01


def test_the_detector_looks_back_only() -> None:
    x, _ = soundfile.read(noisy_path())
    np.testing.assert_array_equal(detect(x)[:100], detect(x[: 100 * FRAME])[:100])


@pytest.mark.parametrize("size", [7, 160, 161, 4096])
def test_the_detector_streams_exactly_and_without_delay(size: int) -> None:
    x, _ = soundfile.read(noisy_path(), dtype="float32")
    audio = x[None, :20_001]
    typed = pulse.load(voice_path()).analyse()
    session = Session(typed.declutter().pulsify(pulse=160).compile())
    assert session.program.outputs[0].delay == 0
    pieces, frames = [], 0
    for start in range(0, audio.shape[1], size):
        pieces.append(session.push(audio[:, start : start + size])["voice"])
        frames += pieces[-1].shape[1]
        assert frames == min(start + size, audio.shape[1]) // FRAME
    pieces.append(session.flush()["voice"])
    streamed = np.concatenate(pieces, 1)
    np.testing.assert_allclose(streamed, typed.run(audio)["voice"], atol=1e-6)
    np.testing.assert_allclose(streamed[0], detect(x[:20_001]), atol=1e-5)
