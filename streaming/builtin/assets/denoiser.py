"""Writes the built-in denoiser as an ordinary offline ONNX model: ``python -m streaming.builtin.assets.denoiser``.

A spectral gate: windowed Fourier transform, power in bands, noise floor by minimum statistics, Wiener gain,
inverse transform. It looks at past frames only, so its one delay is the overlap of its windows, HOP samples.
It has no trained weights, and no operator sees the whole time axis.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from streaming.builtin import model_path

HOP = 160
"""Samples from one frame to the next; half of a window."""
WINDOW = 2 * HOP
BINS = HOP

BAND_BINS = 2.0
"""The distance of the lower bands, in bins."""
LINEAR_BINS = 40.0
"""Above this bin the bands get wider."""
BAND_GROWTH = 0.1
"""How much wider they get with each bin."""

FLOOR_SMOOTHING_FRAMES = 8
"""The power is averaged over this many frames before its minimum is taken."""
FLOOR_POOL_FRAMES = 10
FLOOR_BIAS = 1.75
"""The minimum of a smoothed power is below its mean; measured on white noise for the bands and frames above."""
SNR_SMOOTHING_FRAMES = 2
"""The ratio of power to noise is averaged over this many frames."""
SPEECH_FRAMES = 3
"""The first estimate of speech is averaged over this many frames."""
SPEECH_WEIGHT = 0.9
"""The fraction of the averaged estimate in the second one."""
MIN_GAIN = 0.1
"""Noise is lowered to this fraction at most: more sounds unnatural."""
LOUD_POWER = 1e4
"""Power that no sound in -1..1 reaches: padding of the noise floor's history, so that it never is the minimum."""
SILENT_POWER = 1e-10
"""Power of digital silence, about -120 dB."""

Matrix = NDArray[np.float32]


def fourier() -> Matrix:
    """Return an orthonormal real Fourier basis under a sine window, [2 * BINS, 1, WINDOW].

    Rows are BINS cosines, then BINS sines; the first sine row holds the Nyquist cosine, which has no partner.
    The window, applied on the way in and on the way out, adds up to 1 at an overlap of one half.
    """
    cosine_values = [math.cos(2 * math.pi * step / WINDOW) for step in range(WINDOW)]
    rows = np.outer(np.arange(BINS), np.arange(WINDOW))
    cosines = np.take(cosine_values, rows % WINDOW) * math.sqrt(2 / WINDOW)
    sines = np.take(cosine_values, (rows - WINDOW // 4) % WINDOW) * math.sqrt(2 / WINDOW)
    cosines[0] = 1 / math.sqrt(WINDOW)
    sines[0] = (-1.0) ** np.arange(WINDOW) / math.sqrt(WINDOW)
    window = [math.sin(math.pi * (sample + 0.5) / WINDOW) for sample in range(WINDOW)]
    return (np.concatenate([cosines, sines]) * window).astype(np.float32)[:, None, :]


def band_centres() -> NDArray[np.float64]:
    """Return bins at which bands have their peak: equally spaced up to LINEAR_BINS, wider and wider above."""
    centres = [0.0]
    while centres[-1] < BINS - 1:
        centres.append(centres[-1] + BAND_BINS + max(0.0, centres[-1] - LINEAR_BINS) * BAND_GROWTH)
    return np.array(centres) * (BINS - 1) / centres[-1]


def bands() -> tuple[Matrix, Matrix]:
    """Return overlapping triangles as 1x1 kernels: bins to band means [B, BINS, 1], bands to bins [BINS, B, 1]."""
    centres = band_centres()
    spread = np.stack([np.interp(np.arange(BINS), centres, peak) for peak in np.eye(len(centres))], axis=1)
    mean = spread.T / spread.T.sum(axis=1, keepdims=True)
    return mean.astype(np.float32)[:, :, None], spread.astype(np.float32)[:, :, None]


class NodeCollector:
    """Collects nodes and constants; each call of an operator returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add_constant(self, name: str, value: NDArray[np.float32] | float | Sequence[int]) -> str:
        """Add an initializer, f32, or int64 if ``value`` is a sequence of integers; return its name."""
        dtype = np.int64 if isinstance(value, Sequence) else np.float32
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def add_node(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Add an operator with one output; return the name of the output."""
        self.nodes.append(
            helper.make_node(op, list(inputs), [output], output, None, None, None, **attributes)
        )
        return output

    def model(self, name: str, output: str, frames: str | None) -> onnx.ModelProto:
        """Return the model: ``audio`` [1, T] to an output [1, frames], f32."""
        audio = helper.make_tensor_value_info("audio", TensorProto.FLOAT, [1, "T"])
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, [1, frames])
        body = helper.make_graph(self.nodes, name, [audio], [result], self.constants)
        model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        checks: Any = onnx.checker
        checks.check_model(model, full_check=True)
        return model

    def pool_past(self, pool: str, x: str, frames: int, fill: str, output: str, dilation: int = 1) -> str:
        """Pool every ``dilation``-th of the ``frames`` up to now; frames before the first are ``fill``."""
        before = self.add_constant(f"{output}_pads", [0, 0, (frames - 1) * dilation, 0, 0, 0])
        with_past = self.add_node("Pad", [x, before, fill], f"{output}_padded")
        dilations = {} if dilation == 1 else {"dilations": [dilation]}
        return self.add_node(pool, [with_past], output, kernel_shape=[frames], **dilations)


def noise_floor(graph: NodeCollector, power: str, tenths: int = 10) -> str:
    """Return the noise power [1, B, frames]: the minimum of the smoothed power over this many tenths of a second."""
    loud, quiet = graph.add_constant("loud", LOUD_POWER), graph.add_constant("minus_loud", -LOUD_POWER)
    smooth = graph.pool_past("AveragePool", power, FLOOR_SMOOTHING_FRAMES, loud, "smooth_power")
    negated = graph.add_node("Mul", [smooth, graph.add_constant("minus_one", -1.0)], "negated_power")
    short = graph.pool_past("MaxPool", negated, FLOOR_POOL_FRAMES, quiet, "short_minimum")
    long = graph.pool_past("MaxPool", short, tenths, quiet, "long_minimum", dilation=FLOOR_POOL_FRAMES)
    floor = graph.add_node("Mul", [long, graph.add_constant("bias", -FLOOR_BIAS)], "noise_power")
    return graph.add_node("Max", [floor, graph.add_constant("silent", SILENT_POWER)], "noise_floor")


def gain(graph: NodeCollector, power: str, noise: str) -> str:
    """Return the gain of each band, MIN_GAIN..1: a Wiener gain whose speech power is smoothed over the last few frames.

    A first estimate weighs each frame's speech against noise; averaged over SPEECH_FRAMES it is the steadier
    estimate from which the gain is taken, so single noisy frames do not ring as tones.
    """
    one, zero = graph.add_constant("one", 1.0), graph.add_constant("zero", 0.0)
    ratio = graph.add_node("Div", [power, noise], "noisy_to_noise")
    smooth = graph.pool_past("AveragePool", ratio, SNR_SMOOTHING_FRAMES, zero, "smooth_noisy_to_noise")
    excess = graph.add_node("Relu", [graph.add_node("Sub", [smooth, one], "above_noise")], "speech_to_noise")

    first = graph.add_node("Div", [excess, graph.add_node("Add", [excess, one], "first_total")], "first_gain")
    first_power = graph.add_node("Mul", [first, first], "first_gain_power")
    first_speech = graph.add_node("Mul", [first_power, ratio], "first_speech")
    recent = graph.pool_past("AveragePool", first_speech, SPEECH_FRAMES, zero, "recent_speech")

    weight = graph.add_constant("speech_weight", SPEECH_WEIGHT)
    rest = graph.add_constant("rest", 1 - SPEECH_WEIGHT)
    before = graph.add_node("Mul", [recent, weight], "before")
    now = graph.add_node("Mul", [excess, rest], "now")
    steady = graph.add_node("Add", [before, now], "steady_speech_to_noise")
    wiener = graph.add_node("Div", [steady, graph.add_node("Add", [steady, one], "total")], "wiener_gain")
    return graph.add_node("Max", [wiener, graph.add_constant("lowest_gain", MIN_GAIN)], "band_gain")


def denoiser() -> onnx.ModelProto:
    """Return the model: ``audio`` [1, T] to ``denoised`` [1, T], f32, 16 kHz, any T >= 1, both aligned in time."""
    graph = NodeCollector()
    basis = graph.add_constant("fourier", fourier())
    mean, spread = bands()
    to_bands, to_bins = graph.add_constant("to_bands", mean), graph.add_constant("to_bins", spread)

    channel = graph.add_constant("channel_axis", [1])
    mono = graph.add_node("Unsqueeze", ["audio", channel], "mono")
    spectrum = graph.add_node("Conv", [mono, basis], "spectrum", strides=[HOP], pads=[HOP, WINDOW - 1])
    graph.nodes.append(helper.make_node("Split", [spectrum], ["real", "imaginary"], "parts", axis=1))
    squares = [graph.add_node("Mul", [part, part], f"{part}_power") for part in ("real", "imaginary")]
    power = graph.add_node("Conv", [graph.add_node("Add", squares, "bin_power"), to_bands], "band_power")

    band_gain = gain(graph, power, noise_floor(graph, power))
    bin_gain = graph.add_node("Conv", [band_gain, to_bins], "bin_gain")
    gated = [graph.add_node("Mul", [part, bin_gain], f"{part}_gated") for part in ("real", "imaginary")]
    speech = graph.add_node("Concat", gated, "speech_spectrum", axis=1)
    overlapped = graph.add_node(
        "ConvTranspose", [speech, basis], "overlapped", strides=[HOP], pads=[HOP, HOP]
    )

    length = graph.add_node(
        "Gather", [graph.add_node("Shape", ["audio"], "audio_shape"), channel], "length", axis=0
    )
    whole_hops = graph.add_node("Squeeze", [overlapped, channel], "whole_hops")
    graph.add_node("Slice", [whole_hops, graph.add_constant("begin", [0]), length, channel], "denoised")
    return graph.model("denoiser", "denoised", "T")


def save(model: onnx.ModelProto, path: Path) -> None:
    """Write a model and print its size."""
    path.write_bytes(model.SerializeToString())
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    save(denoiser(), model_path())
