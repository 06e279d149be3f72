"""The built-in denoiser and its recording: reproducible, sane at any length, and really better than its input."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from pulse.facts import Array
from streaming.builtin import SAMPLE_RATE_HZ, clean_path, model_path, noisy_path, voice_path
from streaming.builtin.assets import denoiser, recordings, voice
from tests.streaming.builtin.assets.outputs import output_of
from tests.streaming.command import snr_db

FRAME = 320
denoise = partial(output_of, model_path())


@pytest.fixture(scope="module")
def clean() -> Array:
    return soundfile.read(clean_path())[0]


@pytest.fixture(scope="module")
def noisy() -> Array:
    return soundfile.read(noisy_path())[0]


@pytest.fixture(scope="module")
def denoised_sound(noisy: Array) -> Array:
    return denoise(noisy)


def frame_power(x: Array) -> Array:
    return np.mean(x[: len(x) // FRAME * FRAME].reshape(-1, FRAME) ** 2, axis=1)


@pytest.mark.parametrize(
    ("path", "build"),
    [
        pytest.param(model_path, denoiser.denoiser, id="denoiser"),
        pytest.param(voice_path, voice.voice_detector, id="voice detector"),
    ],
)
def test_the_script_writes_the_stored_model(path: Callable[..., Any], build: Callable[..., Any]) -> None:
    stored, fresh = onnx.load(path()), build()
    for left, right in zip(stored.graph.initializer, fresh.graph.initializer, strict=True):
        np.testing.assert_allclose(numpy_helper.to_array(left), numpy_helper.to_array(right), atol=1e-6)
    del stored.graph.initializer[:], fresh.graph.initializer[:]
    assert stored == fresh


def test_the_script_writes_the_stored_recordings(clean: Array, noisy: Array) -> None:
    step = 1 / 32768
    for stored, fresh in zip((clean, noisy), recordings.make_recordings(), strict=True):
        np.testing.assert_allclose(stored, fresh, atol=2 * step)


def test_the_sound_is_noisy_mono_16_khz(clean: Array, noisy: Array) -> None:
    info = soundfile.info(noisy_path())
    assert (info.samplerate, info.channels, info.subtype) == (SAMPLE_RATE_HZ, 1, "PCM_16")
    assert 4 < info.duration < 5
    assert snr_db(clean, noisy) == pytest.approx(recordings.SNR_DB, abs=0.01)


def test_the_files_are_small() -> None:
    assert model_path().stat().st_size < 500_000
    assert sum(path.stat().st_size for path in (model_path(), noisy_path(), clean_path())) < 1_000_000


def test_the_model_raises_the_ratio_of_signal_to_noise(
    clean: Array, noisy: Array, denoised_sound: Array
) -> None:
    assert snr_db(clean, denoised_sound) > snr_db(clean, noisy) + 5


def test_the_denoiser_quietens_pauses_and_keeps_speech(
    clean: Array, noisy: Array, denoised_sound: Array
) -> None:
    power = frame_power(clean)
    speech, pauses = power > 1e-3 * power.max(), power < 1e-9
    assert pauses.sum() > 20
    change_db = 10 * np.log10(frame_power(denoised_sound) / frame_power(noisy))
    assert np.median(change_db[pauses]) < -10
    kept_db = 10 * np.log10(frame_power(denoised_sound)[speech].sum() / power[speech].sum())
    assert -1.5 < kept_db < 0.5


def test_the_output_is_aligned_with_the_input(clean: Array, denoised_sound: Array) -> None:
    lags = range(-5, 6)
    match = [np.dot(clean[100:-100], np.roll(denoised_sound, -lag)[100:-100]) for lag in lags]
    assert lags[int(np.argmax(match))] == 0


def test_an_isolated_click_passes_unchanged() -> None:
    x = np.zeros(8000)
    x[5000] = 0.5
    np.testing.assert_allclose(denoise(x), x, atol=1e-5)


@pytest.mark.parametrize("length", [1, 7, 159, 160, 161, 319, 320, 321, 1000, 16001])
def test_the_denoiser_takes_any_length(length: int, noisy: Array) -> None:
    y = denoise(noisy[:length])
    assert y.shape == (length,)
    assert np.isfinite(y).all()


def test_silence_stays_silent() -> None:
    assert not denoise(np.zeros(20000)).any()


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 12000), st.integers(0, 12000))
def test_output_depends_on_one_hop_of_future_only(length: int, later: int) -> None:
    x = np.random.default_rng(length).normal(0, 0.1, length + later)
    settled = max(0, length - denoiser.WINDOW)
    np.testing.assert_allclose(denoise(x)[:settled], denoise(x[:length])[:settled], atol=1e-6)


def test_the_model_has_plain_operators_only() -> None:
    operators = {node.op_type for node in onnx.load(model_path()).graph.node}
    shapes = {"Shape", "Gather", "Unsqueeze", "Squeeze", "Pad", "Slice", "Split", "Concat"}
    windows = {"Conv", "ConvTranspose", "MaxPool", "AveragePool"}
    assert operators <= shapes | windows | {"Add", "Sub", "Mul", "Div", "Max", "Relu"}
