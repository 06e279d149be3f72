"""Kaldi's filter bank and cepstrum, against loops in f64 and against kaldi-native-fbank."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.facts import Array
from pulse.front import kaldi_fbank, kaldi_mfcc
from tests.pulse.front.references import kaldi_native_fbank
from tests.pulse.front.stream_checks import assert_near, assert_refused, assert_streams_agree, offline, sound
from tests.shared import shared_path

EPSILON = float(np.finfo(np.float32).eps)


def frames_of(x: Array, size: int, hop: int, snip: bool) -> Array:
    """Frames of one signal, as ``feature-window.cc`` has them."""
    count = max(0, (len(x) - size) // hop + 1) if snip else (len(x) + hop // 2) // hop
    rows: list[list[float]] = []
    for frame in range(count):
        start = frame * hop if snip else frame * hop + hop // 2 - size // 2
        row: list[float] = []
        for at in range(start, start + size):
            while not 0 <= at < len(x):
                at = -at - 1 if at < 0 else 2 * len(x) - 1 - at
            row.append(float(x[at]))
        rows.append(row)
    return np.array(rows).reshape(count, size)


def window_of(name: str, size: int) -> Array:
    a = 2 * math.pi / (size - 1)
    n = np.arange(size)
    hann = np.maximum(0, 0.5 - 0.5 * np.cos(a * n))
    return {
        "povey": hann**0.85,
        "hann": hann,
        "hanning": hann,
        "hamming": 0.54 - 0.46 * np.cos(a * n),
        "rectangular": np.ones(size),
        "blackman": 0.42 - 0.5 * np.cos(a * n) + 0.08 * np.cos(2 * a * n),
        "sine": np.sin(0.5 * a * n),
    }[name]


def mel(hz: float) -> float:
    return 1127 * math.log(1 + hz / 700)


def banks(points: int, bands: int, rate: float, low: float, high: float) -> Array:
    weights = np.zeros((bands, points // 2))
    step = (mel(high) - mel(low)) / (bands + 1)
    for band in range(bands):
        left, centre, right = (mel(low) + (band + k) * step for k in range(3))
        for i in range(points // 2):
            at = mel(i * rate / points)
            if left < at < right:
                weights[band, i] = (
                    (at - left) / (centre - left) if at <= centre else (right - at) / (right - centre)
                )
    return weights


def by_hand(x: Array, how: dict[str, Any], bands: int) -> tuple[Array, Array]:
    """The sums of the bands, and the logarithm of the energy."""
    rate = how.get("sample_rate", 16000)
    size, hop = (
        int(rate * 0.001 * how.get("frame_length", 25)),
        int(rate * 0.001 * how.get("frame_shift", 10)),
    )
    rows = frames_of(x.astype(np.float64) * how.get("scale", 32768.0), size, hop, how.get("snip_edges", True))
    if how.get("remove_dc_offset", True):
        rows = rows - rows.mean(1, keepdims=True)
    energy = (rows**2).sum(1)
    c = how.get("preemphasis", 0.97)
    rows = rows - c * np.concatenate([rows[:, :1], rows[:, :-1]], 1)
    rows = rows * window_of(how.get("window", "povey"), size)
    if not how.get("raw_energy", True):
        energy = (rows**2).sum(1)
    points = 1 << (size - 1).bit_length() if how.get("round_to_power_of_two", True) else size
    power = np.abs(np.fft.rfft(rows, points)[:, :-1]) ** 2
    if not how.get("use_power", True):
        power = np.sqrt(power)
    high = how.get("high_freq", 0.0)
    high = high if high > 0 else rate / 2 + high
    sums = power @ banks(points, bands, rate, how.get("low_freq", 20.0), high).T
    floor = math.log(how["energy_floor"]) if how.get("energy_floor") else -np.inf
    return sums, np.maximum(np.log(np.maximum(energy, EPSILON)), floor)[:, None]


def fbank(x: Array, how: dict[str, Any]) -> Array:
    sums, energy = by_hand(x, how, how.get("num_mel_bins", 80))
    y = np.log(np.maximum(sums, EPSILON)) if how.get("use_log_fbank", True) else sums
    if how.get("use_energy"):
        y = np.concatenate([y, energy] if how.get("htk_compat") else [energy, y], 1)
    return y


def mfcc(x: Array, how: dict[str, Any]) -> Array:
    bands, ceps = how.get("num_mel_bins", 23), how.get("num_ceps", 13)
    sums, energy = by_hand(x, how, bands)
    logs = np.log(np.maximum(sums, EPSILON))
    k = np.arange(ceps)
    table = np.sqrt(2 / bands) * np.cos(math.pi / bands * np.outer(np.arange(bands) + 0.5, k))
    table[:, 0] = math.sqrt(1 / bands)
    lifter = how.get("cepstral_lifter", 22.0)
    y = logs @ table * (1 + 0.5 * lifter * np.sin(math.pi * k / lifter) if lifter else 1)
    if how.get("use_energy", True):
        y[:, :1] = energy
    if how.get("htk_compat"):
        if not how.get("use_energy", True):
            y[:, 0] *= math.sqrt(2)
        y = np.concatenate([y[:, 1:], y[:, :1]], 1)
    return y


BANKS: list[dict[str, Any]] = [
    {},
    {"num_mel_bins": 23, "window": "hamming", "snip_edges": False},
    {"window": "hanning", "remove_dc_offset": False, "use_energy": True},
    {"window": "rectangular", "preemphasis": 0.0, "use_energy": True, "htk_compat": True},
    {"window": "blackman", "low_freq": 60.0, "high_freq": -400.0, "use_power": False},
    {"window": "sine", "use_energy": True, "raw_energy": False, "energy_floor": 1e6},
    {"round_to_power_of_two": False, "scale": 1.0, "num_mel_bins": 40},
    {"sample_rate": 8000, "high_freq": 3800.0, "num_mel_bins": 40, "snip_edges": False, "frame_shift": 12.5},
    {"use_log_fbank": False, "frame_length": 32.0, "frame_shift": 16.0},
]
CEPSTRA: list[dict[str, Any]] = [
    {},
    {"use_energy": False, "snip_edges": False},
    {"use_energy": False, "htk_compat": True, "cepstral_lifter": 0.0},
    {"htk_compat": True, "num_ceps": 20, "num_mel_bins": 40, "window": "hamming", "energy_floor": 1e9},
    {"num_ceps": 1},
]


def text_of(how: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in how.items()) or "default"


def with_offset(frames: int) -> Array:
    """Sound around a constant, which only the removal of the offset takes away."""
    return sound(frames) * 0.5 + np.float32(0.05)


@pytest.mark.parametrize("how", BANKS, ids=text_of)
def test_fbank_agrees_with_its_formula(how: dict[str, Any]) -> None:
    several = [with_offset(length) for length in (431, 3333)]
    model = kaldi_fbank(**how)
    for x in several:
        assert_near(offline(model, x), fbank(x[0], how)[None])
    assert_streams_agree(model, several, (1, 2))


@pytest.mark.parametrize("how", CEPSTRA, ids=text_of)
def test_kaldi_mfcc_agrees_with_its_formula(how: dict[str, Any]) -> None:
    x = with_offset(3333)
    model = kaldi_mfcc(**how)
    assert_near(offline(model, x), mfcc(x[0], how)[None])
    assert_streams_agree(model, x, (2,))


def kaldi_native_features(x: Array, how: dict[str, Any], mfcc: bool) -> Array:
    """The result of kaldi-native-fbank."""
    knf = kaldi_native_fbank()
    options = knf.MfccOptions() if mfcc else knf.FbankOptions()
    names = {"sample_rate": "samp_freq", "frame_length": "frame_length_ms", "frame_shift": "frame_shift_ms"}
    names |= {"window": "window_type", "preemphasis": "preemph_coeff", "num_mel_bins": "num_bins"}
    options.frame_opts.dither = 0
    for key, value in {"num_mel_bins": 23 if mfcc else 80, **how}.items():
        name = names.get(key, key)
        for part in (options.frame_opts, options.mel_opts, options):
            if hasattr(part, name):
                setattr(part, name, value)
                break
        else:
            assert key == "scale"
    extractor = (knf.OnlineMfcc if mfcc else knf.OnlineFbank)(options)
    extractor.accept_waveform(options.frame_opts.samp_freq, (x * how.get("scale", 32768)).ravel().tolist())
    extractor.input_finished()
    return np.stack([extractor.get_frame(frame) for frame in range(extractor.num_frames_ready)])[None]


@pytest.mark.parametrize("how", [how for how in BANKS if how.get("window") != "sine"], ids=text_of)
def test_agrees_with_kaldi_native_fbank(how: dict[str, Any]) -> None:
    x = with_offset(5000)
    assert_near(offline(kaldi_fbank(**how), x), kaldi_native_features(x, how, False))


@pytest.mark.parametrize("how", CEPSTRA, ids=text_of)
def test_the_cepstrum_agrees_with_kaldi(how: dict[str, Any]) -> None:
    x = with_offset(5000)
    assert_near(offline(kaldi_mfcc(**how), x), kaldi_native_features(x, how, True))


def test_silence_becomes_the_smallest_logarithm() -> None:
    """The logarithm of the smallest value that Kaldi takes."""
    x = np.zeros((1, 2000), np.float32)
    output = offline(kaldi_fbank(use_energy=True), x)
    np.testing.assert_allclose(output, math.log(EPSILON), rtol=1e-6)
    assert_streams_agree(kaldi_fbank(use_energy=True), x, (2,))


def test_the_filter_bank_agrees_with_that_of_a_published_model() -> None:
    case = np.load(shared_path("sound/fireredvad_en.npz"))
    assert_near(offline(kaldi_fbank(), case["in"][None].astype(np.float32)), case["fbank"][None])


def test_a_frame_waits_for_two_pulses_and_one_kernel() -> None:
    """A frame ends 15 ms after its pulse of 10 ms begins, so it waits for two; one Fourier transform."""
    pulsed = kaldi_fbank().declutter().pulsify(pulse=160)
    assert [port.delay for port in pulsed.outputs] == [2]
    assert [row.kernel for row in pulsed.compile().instructions].count("fourier") == 1


def test_verify_proves_kaldi_fbank() -> None:
    pulse.verify(
        kaldi_fbank(num_mel_bins=20, sample_rate=2000, snip_edges=False, low_freq=0.0), pulse=20
    ).require()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            partial(kaldi_fbank, dither=1.0),
            "kaldi_fbank: dither=1.0 must be 0: random numbers cannot be repeated",
        ),
        (partial(kaldi_fbank, window="kaiser"), "window='kaiser' must be one of 'povey', 'hamming'"),
        (partial(kaldi_fbank, num_mel_bins=2), "num_mel_bins=2 must be an integer from 3"),
        (
            partial(kaldi_fbank, high_freq=9000.0),
            "a band from 20 to 9000 Hz; it must lie within 0 and 8000 Hz",
        ),
        (partial(kaldi_fbank, frame_shift=0.01), "frame_shift=0.01 ms are 0 samples at 16000 Hz, at least 1"),
        (
            partial(kaldi_fbank, sample_rate=11025, round_to_power_of_two=False),
            "275 samples are not an even number",
        ),
        (
            partial(kaldi_fbank, preemphasis=1.5),
            "preemphasis=1.5 must be a finite number of at least 0 and at most 1",
        ),
        (partial(kaldi_fbank, snip_edges=0), "snip_edges=0 must be True or False"),
        (partial(kaldi_mfcc, num_ceps=24), "kaldi_mfcc: num_ceps=24 must be an integer from 1 to 23"),
        (partial(kaldi_fbank, shape="T"), "must have 2 axes, such as '1,T'"),
    ],
)
def test_kaldi_features_refuse_bad_arguments(call: Any, message: str) -> None:
    assert_refused(call, message)
