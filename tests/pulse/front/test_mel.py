"""Mel filter banks, mel spectrograms and cepstra: by their definitions, and against librosa and torchaudio."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.facts import Array
from pulse.front import dct, mel, mel_spectrogram, mfcc
from pulse.front.triangles import SCALES, mel_triangles
from pulse.front.windows import centre, window_values
from tests.pulse.front.references import librosa, torch, torchaudio
from tests.pulse.front.stream_checks import assert_near, assert_refused, assert_streams_agree, offline, sound


def to_mel(hz: float, scale: str) -> float:
    if scale == "htk":
        return 2595 * math.log10(1 + hz / 700)
    return hz * 3 / 200 if hz < 1000 else 15 + 27 * math.log(hz / 1000) / math.log(6.4)


def to_hz(value: float, scale: str) -> float:
    if scale == "htk":
        return 700 * (10 ** (value / 2595) - 1)
    return value * 200 / 3 if value < 15 else 1000 * 6.4 ** ((value - 15) / 27)


def bank(bins: int, bands: int, rate: float, low: float, high: float, scale: str, norm: str | None) -> Array:
    """``[bins, bands]``, one triangle after the other."""
    ends = to_mel(low, scale), to_mel(high, scale)
    corners = [to_hz(ends[0] + (ends[1] - ends[0]) * k / (bands + 1), scale) for k in range(bands + 2)]
    weights = np.zeros((bins, bands))
    for band in range(bands):
        left, centre, right = corners[band : band + 3]
        for k in range(bins):
            hz = k * rate / 2 / (bins - 1)
            up, down = (hz - left) / (centre - left), (right - hz) / (right - centre)
            weights[k, band] = max(0.0, min(up, down)) * (2 / (right - left) if norm == "slaney" else 1)
    return weights


def powers(x: Array, n: int, size: int, hop: int, window: str = "hann") -> Array:
    """``[frames, bins]`` of one signal."""
    padded = np.pad(x[0].astype(np.float64), n // 2, mode="reflect")
    weights = centre(window_values("w", window, size), n)
    rows = [padded[start : start + n] * weights for start in range(0, len(padded) - n + 1, hop)]
    return np.abs(np.fft.rfft(np.array(rows))) ** 2


BANKS: list[dict[str, Any]] = [
    {"n_mels": 40},
    {"n_mels": 80, "mel_scale": "slaney", "norm": "slaney"},
    {"n_mels": 23, "f_min": 60.0, "f_max": 7600.0, "norm": "slaney"},
    {"n_mels": 64, "f_min": 125.0, "f_max": 7500.0, "sample_rate": 22050, "mel_scale": "slaney"},
]


def limits_of(how: dict[str, Any]) -> dict[str, Any]:
    rate = how.get("sample_rate", 16000)
    return {
        "rate": rate,
        "low": how.get("f_min", 0.0),
        "high": how.get("f_max", rate / 2),
        "scale": how.get("mel_scale", "htk"),
        "norm": how.get("norm"),
    }


@pytest.mark.parametrize(("to_scale", "back"), SCALES.values(), ids=SCALES)
def test_the_scales_are_inverse(to_scale: Callable[[Array], Array], back: Callable[[Array], Array]) -> None:
    hz = np.linspace(0, 11025, 400)
    np.testing.assert_allclose(back(to_scale(hz)), hz, atol=1e-8)


@pytest.mark.parametrize("how", BANKS, ids=str)
def test_mel_agrees_with_its_formula(how: dict[str, Any]) -> None:
    x = np.abs(sound(21 * 257)).reshape(1, 257, 21)
    weights = bank(257, how["n_mels"], **limits_of(how))
    model = mel(**how)
    assert_near(offline(model, x), np.swapaxes(x, 1, 2) @ weights)
    assert_streams_agree(model, x)
    turned = mel(**how, layout="T,F", output_layout="F,T", shape="1,frames,257")
    assert_near(
        offline(turned, np.swapaxes(x, 1, 2).copy()), np.swapaxes(np.swapaxes(x, 1, 2) @ weights, 1, 2)
    )
    assert_streams_agree(turned, np.swapaxes(x, 1, 2).copy(), (2,))


@pytest.mark.parametrize("how", BANKS, ids=str)
def test_librosa_has_the_same_bank(how: dict[str, Any]) -> None:
    rate, low, high, scale, norm = limits_of(how).values()
    bank = mel_triangles(257, how["n_mels"], rate, low, high, scale, norm == "slaney")
    expected = librosa().filters.mel(
        sr=rate, n_fft=512, n_mels=how["n_mels"], fmin=low, fmax=high, htk=scale == "htk", norm=norm
    )
    assert_near(bank, expected.T)


@pytest.mark.parametrize("how", BANKS, ids=str)
def test_torchaudio_has_the_same_bank(how: dict[str, Any]) -> None:
    rate, low, high, scale, norm = limits_of(how).values()
    bank = mel_triangles(257, how["n_mels"], rate, low, high, scale, norm == "slaney")
    other = torchaudio().functional.melscale_fbanks(257, low, high, how["n_mels"], rate, norm, scale)
    assert_near(bank, other.numpy())


SPECTROGRAMS: list[dict[str, Any]] = [
    {"n_fft": 512, "hop": 160, "win_length": 400, "n_mels": 40},
    {"n_fft": 400, "hop": 160, "n_mels": 40, "norm": "slaney", "mel_scale": "slaney", "log": "log10"},
    {"n_fft": 256, "n_mels": 20, "power": 1.0, "log": "natural", "floor": 1e-5, "window": "hamming"},
    {"n_fft": 256, "hop": 64, "n_mels": 20, "log": "natural", "floor": 0.0, "offset": 1e-6},
    {"n_fft": 256, "hop": 128, "n_mels": 20, "log": "db"},
]


def spectrogram(x: Array, how: dict[str, Any]) -> Array:
    n, size = how["n_fft"], how.get("win_length", how["n_fft"])
    y = powers(x, n, size, how.get("hop", size // 2), how.get("window", "hann"))
    y = y ** (how.get("power", 2.0) / 2) @ bank(n // 2 + 1, how["n_mels"], **limits_of(how))
    limited = np.maximum(y + how.get("offset", 0.0), how.get("floor", 1e-10))
    with np.errstate(all="ignore"):
        return {
            "none": y,
            "natural": np.log(limited),
            "log10": np.log10(limited),
            "db": 10 * np.log10(limited),
        }[how.get("log", "none")]


@pytest.mark.parametrize("how", SPECTROGRAMS, ids=str)
def test_mel_spectrogram_agrees_with_numpy(how: dict[str, Any]) -> None:
    x = sound(2777)
    model = mel_spectrogram(**how)
    assert_near(offline(model, x), spectrogram(x, how)[None])
    assert_streams_agree(model, x, (2,))
    turned = mel_spectrogram(**how, output_layout="F,T")
    assert_near(offline(turned, x), spectrogram(x, how).T[None])


@pytest.mark.parametrize("dct_norm", ["ortho", "none"])
@pytest.mark.parametrize("lifter", [0.0, 22.0])
def test_mfcc_agrees_with_its_formula(dct_norm: str, lifter: float) -> None:
    x = sound(2777)
    how: dict[str, Any] = {"n_fft": 512, "hop": 160, "win_length": 400, "n_mels": 40, "log": "db"}
    k, n = np.arange(13), np.arange(40)
    table = 2 * np.cos(np.pi / 40 * np.outer(n + 0.5, k))
    if dct_norm == "ortho":
        table *= np.where(k == 0, math.sqrt(1 / 160), math.sqrt(1 / 80))
    weight = 1 + lifter / 2 * np.sin(np.pi * (k + 1) / lifter) if lifter else 1
    expected = (spectrogram(x, how) @ table * weight)[None]
    model = mfcc(13, **how, dct_norm=dct_norm, lifter=lifter)
    assert_near(offline(model, x), expected)
    assert_streams_agree(model, x, (2,))
    alone = dct(13, dct_norm, lifter=lifter, shape="1,frames,40")
    assert_near(offline(alone, spectrogram(x, how)[None].astype(np.float32)), expected)
    assert_streams_agree(alone, spectrogram(x, how)[None].astype(np.float32))


def test_mel_features_agree_with_librosa() -> None:
    x = sound(4000)
    how: dict[str, Any] = {"n_fft": 512, "n_mels": 40, "mel_scale": "slaney", "norm": "slaney"}
    same = {"y": x[0], "sr": 16000, "n_fft": 512, "hop_length": 160, "n_mels": 40, "pad_mode": "reflect"}
    expected = librosa().feature.melspectrogram(**same)
    assert_near(offline(mel_spectrogram(hop=160, **how, output_layout="F,T"), x), expected[None])
    decibels = librosa().power_to_db(expected, top_db=None)
    expected = librosa().feature.mfcc(S=decibels, n_mfcc=20, lifter=22)
    assert_near(offline(mfcc(20, hop=160, **how, lifter=22.0, output_layout="F,T"), x), expected[None])


def test_mel_features_agree_with_torchaudio() -> None:
    transforms = torchaudio().transforms
    x = sound(4000)
    transform = transforms.MelSpectrogram(16000, 512, 400, 160, n_mels=64)
    how: dict[str, Any] = {"n_fft": 512, "win_length": 400, "hop": 160, "n_mels": 64}
    assert_near(offline(mel_spectrogram(**how, output_layout="F,T"), x), transform(torch().tensor(x)).numpy())
    melkwargs = {"n_fft": 512, "win_length": 400, "hop_length": 160, "n_mels": 64}
    transform = transforms.MFCC(16000, 40, log_mels=True, melkwargs=melkwargs)
    model = mfcc(40, **how, log="natural", floor=0.0, offset=1e-6, output_layout="F,T")
    assert_near(offline(model, x), transform(torch().tensor(x)).numpy())


def test_verify_proves_mel_spectrogram() -> None:
    pulse.verify(mel_spectrogram(n_fft=64, hop=16, n_mels=8, log="db"), pulse=16).require()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(mel, 0), "mel: n_mels=0 must be an integer from 1"),
        (partial(mel, f_max=9000.0), "a band from 0 to 9000 Hz; it must lie within 0 and 8000 Hz"),
        (partial(mel, f_min=4000.0, f_max=300.0), "a band from 4000 to 300 Hz"),
        (partial(mel, mel_scale="bark"), "mel_scale='bark' must be one of 'htk', 'slaney'"),
        (partial(mel, norm="area"), "norm='area' must be one of 'none', 'slaney'"),
        (partial(mel, layout="F,T,2"), "layout='F,T,2' must be one of 'F,T', 'T,F'"),
        (partial(mel, shape="1,257,frames,2"), "must have 3 axes"),
        (partial(mel_spectrogram, log="log"), "log='log' must be one of 'none', 'natural', 'log10', 'db'"),
        (partial(mel_spectrogram, power=0.0), "power=0.0 must be a finite number above 0"),
        (partial(mfcc, 200), "mfcc: n_mfcc=200 must be an integer from 1 to 128"),
        (partial(mfcc, dct_norm="orthogonal"), "dct_norm='orthogonal' must be one of 'ortho', 'none'"),
        (partial(dct, norm="x"), "norm='x' must be one of 'ortho', 'none'"),
    ],
)
def test_mel_features_refuse_bad_arguments(call: Any, message: str) -> None:
    assert_refused(call, message)
