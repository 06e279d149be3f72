"""Writes the built-in voice detector as an ordinary offline ONNX model: ``python -m streaming.builtin.assets.voice``.

Power in bands, set against a noise floor by minimum statistics, as in the denoiser: where some bands of speech stand
well above it, there is voice. It looks at past samples only and has no trained weights. It is an example: it takes any
sound that comes and goes for voice, so a product needs a trained model.
"""

import numpy as np
import onnx
from onnx import helper

from streaming.builtin import voice_path
from streaming.builtin.assets.denoiser import (
    HOP,
    WINDOW,
    Matrix,
    NodeCollector,
    band_centres,
    bands,
    fourier,
    noise_floor,
    save,
)

BIN_HZ = 50.0
"""The distance of two bins of the spectrum."""
SPEECH_HZ = (100.0, 4000.0)
"""The bands between these frequencies are evidence of speech."""
FLOOR_TENTHS = 30
"""The floor is the minimum of the last three seconds: pauses of speech are closer together than that."""
SMOOTHING_FRAMES = 3
"""The power is averaged over this many frames."""
QUIET_POWER = 1e-7
"""Power of about -70 dB: quieter sound is not voice, even if it was quieter before."""
UNDECIDED_EVIDENCE = 1.75
"""The evidence at which speech is as likely as noise: in stationary noise it is 1.0, and 1.5 in one frame of 1000."""
SHARPNESS = 3.0
"""The slope of the probability at that evidence: the factor before the sigmoid."""


def speech_bands() -> Matrix:
    """Return the mean over the bands of speech as a 1x1 kernel, [1, B, 1]."""
    centres_hz = band_centres() * BIN_HZ
    in_band = (centres_hz >= SPEECH_HZ[0]) & (centres_hz <= SPEECH_HZ[1])
    return (in_band / in_band.sum()).astype(np.float32)[None, :, None]


def evidence(graph: NodeCollector, power: str, noise: str) -> str:
    """Return log(1 + mean over bands of the squared power over the floor), [1, 1, frames]; squares favour formants."""
    zero, one = graph.add_constant("zero", 0.0), graph.add_constant("one", 1.0)
    recent = graph.pool_past("AveragePool", power, SMOOTHING_FRAMES, zero, "recent_power")
    ratio = graph.add_node("Div", [recent, noise], "noisy_to_noise")
    squared = graph.add_node("Mul", [ratio, ratio], "squared_ratio")
    mean = graph.add_node(
        "Conv", [squared, graph.add_constant("speech_bands", speech_bands())], "speech_ratio"
    )
    return graph.add_node("Log", [graph.add_node("Add", [mean, one], "above_nothing")], "evidence")


def voice_detector() -> onnx.ModelProto:
    """Return the model: ``audio`` [1, T] to ``voice`` [1, T/160], f32, 16 kHz.

    Frame k is the probability that there is voice in samples 160 k to 160 (k + 1), known with the last of them.
    """
    graph = NodeCollector()
    channel = graph.add_constant("channel_axis", [1])
    mono = graph.add_node("Unsqueeze", ["audio", channel], "mono")
    basis = graph.add_constant("fourier", fourier())
    spectrum = graph.add_node("Conv", [mono, basis], "spectrum", strides=[HOP], pads=[WINDOW - HOP, 0])
    graph.nodes.append(helper.make_node("Split", [spectrum], ["real", "imaginary"], "parts", axis=1))
    squares = [graph.add_node("Mul", [part, part], f"{part}_power") for part in ("real", "imaginary")]
    to_bands = graph.add_constant("to_bands", bands()[0])
    power = graph.add_node("Conv", [graph.add_node("Add", squares, "bin_power"), to_bands], "band_power")

    noise = noise_floor(graph, power, FLOOR_TENTHS)
    floor = graph.add_node("Max", [noise, graph.add_constant("quiet", QUIET_POWER)], "floor")
    centred = graph.add_node(
        "Sub", [evidence(graph, power, floor), graph.add_constant("undecided", UNDECIDED_EVIDENCE)], "centred"
    )
    sharp = graph.add_node("Mul", [centred, graph.add_constant("sharpness", SHARPNESS)], "sharp")
    graph.add_node("Squeeze", [graph.add_node("Sigmoid", [sharp], "probability"), channel], "voice")
    return graph.model("voice_detector", "voice", None)


if __name__ == "__main__":
    save(voice_detector(), voice_path())
