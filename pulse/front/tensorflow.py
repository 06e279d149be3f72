"""The spectrogram and the cepstrum of TensorFlow's audio operators."""

import math

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.front.builder import FunctionBuilder
from pulse.front.logarithms import floored_log
from pulse.front.parameter_checks import require_count, require_flag, require_number
from pulse.front.spectra import power_of
from pulse.front.transforms import MAX_SAMPLES, forward_matrix
from pulse.front.triangles import kaldi_mel, require_band
from pulse.front.windows import window_values
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.reduce import Reduce
from pulse.support.powers import next_power_of_two

LOG_FLOOR = 1e-12
"""TensorFlow's floor of a band before the logarithm."""


def tf_spectrogram(
    window_size: int = 640, stride: int = 320, *, magnitude_squared: bool = False, shape: str = "1,T"
) -> TypedModel:
    """Compute TensorFlow's ``AudioSpectrogram``.

    Input    x [B, T]
    Output   spectrogram [B, frames, F],  frames = (T - window_size) // stride + 1, F of the next power of two
    Delay    a frame is ready with its last sample

    magnitude_squared  powers in place of magnitudes, as ``tf_mfcc`` requires
    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "tf_spectrogram"
    require_count(function, "window_size", window_size, 2, MAX_SAMPLES)
    require_count(function, "stride", stride)
    require_flag(function, "magnitude_squared", magnitude_squared)
    builder = FunctionBuilder(function, {"x": shape})
    builder.require_rank(builder["x"], 2, "1,T")
    points = next_power_of_two(window_size)
    window = window_values(function, "hann", window_size)
    first = int(np.flatnonzero(window)[0])
    x = builder.pad(builder["x"], 1, -first, 0)
    matrix = forward_matrix(points, window_size, True) * window[:, None]
    y = _transform(builder, builder.frame(x, 1, window_size - first, stride), matrix[first:])
    power = power_of(builder, y)
    return builder.model(spectrogram=power if magnitude_squared else builder.apply("sqrt", power))


def _transform(builder: FunctionBuilder, frames: OutletId, matrix: Array) -> OutletId:
    """Return ``[B, frames, n]`` times a transform [n, 2F].

    It is the transform of the differences from the mean of a frame, plus that of the mean. TensorFlow transforms in
    f64. In f32 a constant level leaves about 1e-7 of itself in bins that should be 0, and a logarithm shows that. The
    spectrum of a constant is known, so it need not be a sum of terms that cancel.
    """
    level = builder.add("level", Reduce("mean", (2,), True), frames)
    centred = builder.matmul(builder.apply("sub", frames, level, name="rest"), matrix, "transform")
    return builder.apply(
        "add", centred, builder.matmul(level, matrix.sum(0, keepdims=True), "level_transform")
    )


def tf_mfcc(
    sample_rate: int = 16000,
    upper_frequency_limit: float = 4000.0,
    *,
    lower_frequency_limit: float = 20.0,
    filterbank_channel_count: int = 40,
    dct_coefficient_count: int = 13,
    shape: str = "1,frames,513",
) -> TypedModel:
    """Compute TensorFlow's ``Mfcc``.

    Input    x [B, frames, F], powers
    Output   features [B, frames, dct_coefficient_count]
    Delay    none

    Raises   InputError: an option is out of range, or the shape does not fit
    """
    function = "tf_mfcc"
    require_count(function, "sample_rate", sample_rate)
    bands = require_count(function, "filterbank_channel_count", filterbank_channel_count)
    coefficients = require_count(function, "dct_coefficient_count", dct_coefficient_count, 1, bands)
    low, high = (
        require_number(function, name, value, 0)
        for name, value in (
            ("lower_frequency_limit", lower_frequency_limit),
            ("upper_frequency_limit", upper_frequency_limit),
        )
    )
    require_band(function, low, high, sample_rate)
    builder = FunctionBuilder(function, {"x": shape})
    x = builder["x"]
    builder.require_rank(x, 3, "1,frames,513")
    bins = builder.require_fixed(x, 2, "the frequencies")
    if bins < 2:
        raise InputError(f"{function}: {bins} frequency in {builder.text(x)!r}; a spectrogram has at least 2")
    logs = floored_log(
        builder,
        builder.matmul(builder.apply("sqrt", x), _bank(bins, bands, sample_rate, low, high), "bank"),
        LOG_FLOOR,
    )
    angle = np.outer(np.arange(bands) + 0.5, np.arange(coefficients)) * math.pi / bands
    return builder.model(features=builder.matmul(logs, np.cos(angle) * math.sqrt(2 / bands), "cepstrum"))


def _bank(bins: int, bands: int, rate_hz: float, low_hz: float, high_hz: float) -> Array:
    """Return ``[bins, bands]``: each frequency is shared by the two bands whose centres are next to it in mel."""
    step_hz = 0.5 * rate_hz / (bins - 1)
    low, high = kaldi_mel(np.array([low_hz, high_hz]))
    centres = low + (high - low) / (bands + 1) * np.arange(bands + 2)
    weights = np.zeros((bins, bands + 2))
    inner_bins = np.arange(max(0, int(1.5 + low_hz / step_hz)), min(bins - 1, int(high_hz / step_hz)) + 1)
    bins_mel = kaldi_mel(inner_bins * step_hz)
    left = np.clip(np.searchsorted(centres[1:-1], bins_mel, "left"), 0, bands)
    share = (centres[left + 1] - bins_mel) / (centres[left + 1] - centres[left])
    weights[inner_bins, left] = share
    weights[inner_bins, left + 1] += 1 - share
    return weights[:, 1:-1]
