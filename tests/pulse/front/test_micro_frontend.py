"""The integer front end of TensorFlow Lite Micro, bit for bit: against loops over integers, and its own results."""

import math
import re
import wave
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.facts import Array
from pulse.front import micro_frontend
from pulse.program.whole_stream import stream_whole
from streaming import Session
from tests.pulse.front.stream_checks import assert_refused, assert_streams_agree, offline
from tests.shared import shared_path

F = np.float32
RECORDED = Path(__file__).with_name("micro_features.csv")
"""The outputs of pymicro-features 2.0.2 for ``chirp``, as integers."""


def chirp(samples: int = 4160) -> Array:
    """16-bit integers of many frequencies, louder and softer."""
    n = np.arange(samples)
    return ((n * n // 97 * 31 % 20011 - 10005) * (1 + n // 1600 % 3) // 3).astype(F)


def features(x: Array, **how: Any) -> Array:
    """Turn integer samples into integers [frames, channels]."""
    return offline(micro_frontend(scale=1.0, output_scale=1.0, **how), x[None])[0]


def fraction(x: int) -> int:
    return (x + (1 << 14)) >> 15


def short(x: int) -> int:
    return (x + (1 << 15)) % (1 << 16) - (1 << 15)


def times(x: tuple[int, int], turn: float) -> tuple[int, int]:
    c, s = math.floor(0.5 + 32767 * math.cos(turn)), math.floor(0.5 + 32767 * math.sin(turn))
    return fraction(x[0] * c - x[1] * s), fraction(x[0] * s + x[1] * c)


def complex_transform(x: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The transform of kissfft with four branches, in 16-bit integers."""
    size = len(x)
    if size == 1:
        return x
    parts = [complex_transform(x[q::4]) for q in range(4)]
    result = [(0, 0)] * size
    for k in range(size // 4):
        a, b, c, d = ((fraction(part[k][0] * 8191), fraction(part[k][1] * 8191)) for part in parts)
        b, c, d = (times(sample, -2 * math.pi * k * q / size) for q, sample in enumerate((b, c, d), 1))
        for q in range(4):
            turn = (1, -1)[q // 2]
            if q % 2 == 0:
                re = a[0] + c[0] + turn * (b[0] + d[0])
                im = a[1] + c[1] + turn * (b[1] + d[1])
            else:
                re = a[0] - c[0] + turn * (b[1] - d[1])
                im = a[1] - c[1] - turn * (b[0] - d[0])
            result[k + q * size // 4] = short(re), short(im)
    return result


def energies(x: list[int]) -> list[int]:
    """Combine the bins of real points."""
    half = len(x) // 2
    z = complex_transform(list(zip(x[::2], x[1::2], strict=True)))
    squares = [0] * (half + 1)
    for k in range(1, half // 2 + 1):
        low = fraction(z[k][0] * 16383), fraction(z[k][1] * 16383)
        mirrored = fraction(z[half - k][0] * 16383), fraction(-z[half - k][1] * 16383)
        even, odd = (low[0] + mirrored[0], low[1] + mirrored[1]), (low[0] - mirrored[0], low[1] - mirrored[1])
        t = times(odd, -math.pi * (k / half + 0.5))
        squares[k] = ((even[0] + t[0]) >> 1) ** 2 + ((even[1] + t[1]) >> 1) ** 2
        squares[half - k] = ((even[0] - t[0]) >> 1) ** 2 + ((t[1] - even[1]) >> 1) ** 2
    return squares


def bands(energy: list[int], channels: int, low: float, high: float, rate: int) -> list[int]:
    """Each bin counts to two bands, by its distance from their centres in mel."""

    def mel(hz: float) -> np.float32:
        return F(1127) * np.log1p(F(hz) / F(700))

    first, spacing = mel(low), F((mel(high) - mel(low)) / F(channels + 1))
    centres = [first, *(first + spacing * F(i + 1) for i in range(channels + 1))]
    step = F(0.5) * F(rate) / F(len(energy) - 1)
    sums = [0] * (channels + 2)
    band = 0
    for index in range(int(F(1.5) + F(low) / step), len(energy)):
        while band <= channels and mel(F(index) * step) > centres[band + 1]:
            band += 1
        if band > channels:
            break
        share = (centres[band + 1] - mel(F(index) * step)) / (centres[band + 1] - centres[band])
        sums[band] += math.floor(share * F(4096) + F(0.5)) * energy[index]
        sums[band + 1] += math.floor((F(1) - share) * F(4096) + F(0.5)) * energy[index]
    return sums[1 : channels + 1]


def gain(x: int) -> int:
    """The parabola through three gains between two powers of two."""

    def exact(index: int) -> int:
        return min(32767, int(F(1 << 21) * np.power(F(index) / F(128) + F(80), F(-0.95)) + F(0.5)))

    if x <= 2:
        return exact(x)
    bits = x.bit_length()
    start = 1 << (bits - 1)
    y0, y1, y2 = exact(start), exact(start + start // 2), exact(2 * start)
    slope = 4 * (y1 - y0) - (y2 - y0)
    place = (x << 11 >> bits) & 0x3FF
    inner = (((y2 - y0 - slope) * place) >> 5) + slope * 32
    return ((inner * place + (1 << 14)) >> 15) + y0


def logarithm(x: int) -> int:
    if x <= 1:
        return 0
    whole = x.bit_length() - 1
    rest = ((x << 16) >> whole) - (1 << 16)
    left, right = (
        0 if k > 128 else math.floor((math.log2(1 + k / 128) - k / 128) * 65536 + 0.5)
        for k in (rest >> 9, (rest >> 9) + 1)
    )
    binary = (whole << 16) + rest + left + (((right - left) * (rest & 511)) >> 16)
    return ((((45426 * binary + 32768) >> 16) << 6) + 32768) >> 16


def loops(x: Array) -> Array:
    """The whole of it with its usual parameters, frame by frame."""
    window = [
        math.floor((F(0.5) - F(0.5) * np.cos(F(F(np.pi) * F(2) / F(480)) * F(i + 0.5))) * F(4096) + F(0.5))
        for i in range(480)
    ]
    noise, rows = [0] * 40, list[list[int]]()
    for start in range(0, len(x) - 479, 160):
        frame = [
            (int(value) * weight) >> 12 for value, weight in zip(x[start : start + 480], window, strict=True)
        ]
        shift = 15 - max(abs(value) for value in frame).bit_length()
        energy = energies([value << shift for value in frame] + [0] * 32)
        row: list[int] = []
        for channel, total in enumerate(bands(energy, 40, 125.0, 7500.0, 16000)):
            root = math.isqrt(total)
            level = (root + (total - root * root > root)) >> shift
            smoothing = int(F(0.06 if channel % 2 else 0.025) * 16384)
            noise[channel] = ((level << 10) * smoothing + noise[channel] * (16384 - smoothing)) >> 14
            signal = max(((level << 10) - min(noise[channel], level << 10)) >> 10, (level * 819) >> 14)
            snr = (signal * gain(noise[channel])) >> 6
            row.append(logarithm(((snr * snr) >> 20 if snr < 8192 else (snr >> 6) - 64) << 3))
        rows.append(row)
    return np.array(rows)


def test_loops_over_integers_agree() -> None:
    x = chirp(480 + 12 * 160)
    assert np.array_equal(features(x), loops(x))


def test_equals_stored_results_of_the_package() -> None:
    assert np.array_equal(features(chirp()), np.loadtxt(RECORDED, np.int64, delimiter=","))


def pymicro(x: Array) -> Array:
    """pymicro-features' own, as integers."""
    try:
        package = import_module("pymicro_features")
    except ImportError:
        pytest.skip("pymicro-features is not here: pip install pymicro-features")
    front, sound, rows, start = package.MicroFrontend(), x.astype(np.int16).tobytes(), [], 0
    while start + 320 <= len(sound):
        result = front.process_samples(sound[start : start + 320])
        start += 2 * result.samples_read
        if result.features:
            rows.append(result.features)
    return np.array(rows) / 0.0390625


def signals() -> dict[str, Array]:
    """16-bit samples, from silence to clipping."""
    rng, n = np.random.default_rng(0), np.arange(16000)
    sounds = {
        "noise": rng.standard_normal(n.size) * 3000,
        "quiet": rng.standard_normal(n.size) * 5,
        "clipped": rng.standard_normal(n.size) * 40000,
        "silence": np.zeros(n.size),
        "lowest": np.full(n.size, -32768.0),
        "square": 32767 * np.sign(np.sin(n * 0.1)),
        "tone": 20000 * np.sin(n * 0.3),
        "clicks": (n % 4000 == 0) * 30000.0,
        "swelling": rng.standard_normal(n.size) * np.exp(n / 1600),
    }
    return {name: np.clip(np.round(x), -32768, 32767).astype(F) for name, x in sounds.items()}


@pytest.mark.parametrize("name", list(signals()))
def test_equals_the_package(name: str) -> None:
    x = signals()[name]
    assert np.array_equal(features(x), pymicro(x))


def test_equals_the_package_on_speech() -> None:
    with wave.open(str(shared_path("audio/noisy_speech_16k.wav"))) as file:
        x = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(F)
    expected = pymicro(x)
    session = Session(micro_frontend().declutter().pulsify(pulse=320).compile())
    parts = [
        session.push(x[None, start : start + 1000] / F(32768))["features"] for start in range(0, len(x), 1000)
    ]
    output = np.concatenate([*parts, session.flush()["features"]], 1)[0]
    assert np.array_equal(output, (expected * 0.0390625).astype(F))


def test_features_of_a_stream_agree_with_the_whole() -> None:
    assert assert_streams_agree(micro_frontend(), chirp()[None] / F(32768)) == {"features": 2}
    pulse.verify(micro_frontend(), pulse=160, lengths=(480, 481, 639, 4_000)).require()


def test_the_documented_recipe_outputs_every_third_triple(tmp_path: Path) -> None:
    """The recipe joins three frames, at every third frame."""
    page = Path(__file__).parents[3] / "docs" / "front_references.md"
    (text,) = re.findall(
        r"```toml\n(rate = 16000\n\[\[stage\]\]\nmicro_frontend.*?)```", page.read_text(), re.DOTALL
    )
    path = tmp_path / "micro.toml"
    path.write_text(text)
    rows = offline(micro_frontend(), chirp()[None] / F(32768))
    (output,) = stream_whole(pulse.stream(path, pulse=480), {"x": chirp()[None] / F(32768)}).values()
    assert np.array_equal(output, rows.reshape(1, 8, 120))


@pytest.mark.parametrize(
    "how",
    [
        {"enable_pcan": False},
        {"enable_log": False},
        {"enable_pcan": False, "enable_log": False},
        {"num_channels": 32, "window_ms": 25},
        {"sample_rate": 8000, "window_ms": 16, "upper_band_limit": 3800.0, "gain_bits": 20},
    ],
    ids=str,
)
def test_other_parameters_stream(how: dict[str, Any]) -> None:
    model = micro_frontend(scale=1.0, output_scale=1.0, **how)
    y = offline(model, chirp()[None])
    assert np.array_equal(y, np.round(y))
    assert 0 <= y.min() < y.max() <= 65535
    assert np.ptp(y) > 50
    assert_streams_agree(model, chirp()[None])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"window_ms": 10},
            "window_ms=10 at 16000 Hz takes transforms of 256 points; allowed are 32, 128, 512, 2048",
        ),
        ({"upper_band_limit": 9000.0}, "micro_frontend: "),
        ({"lower_band_limit": 10.0}, "must lie between the bins 2 and 255 of 31.25 Hz each"),
        ({"upper_band_limit": 8000.0}, "must lie between the bins 2 and 255"),
        ({"even_smoothing": 2.0}, "even_smoothing=2.0 must be"),
        ({"gain_bits": 40}, "gain_bits=40 must be"),
        ({"scale": 0.0}, "scale=0.0 must be"),
        ({"shape": "T,1,2"}, "must have 2 axes"),
        ({"shape": "B,T"}, "the streams, axis 0"),
    ],
)
def test_micro_frontend_refuses_bad_arguments(how: dict[str, Any], message: str) -> None:
    assert_refused(partial(micro_frontend, **how), message)
