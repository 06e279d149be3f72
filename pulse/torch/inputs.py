"""Inputs of any length, made of an example."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pulse.facts import Array
from pulse.torch.lengths import Lengths

LOUDER = 10.0
"""The factor of louder inputs."""


class SampledInputs(NamedTuple):
    """The example of an input, and its dynamic axes."""

    value: Array
    axes: Mapping[int, str]


def lengths_of(samples: Mapping[str, SampledInputs]) -> Lengths:
    """Return the number of frames of each symbol in the example."""
    return {
        symbol: sample.value.shape[axis]
        for sample in samples.values()
        for axis, symbol in sample.axes.items()
    }


def draw_inputs(
    samples: Mapping[str, SampledInputs], lengths: Lengths, rng: np.random.Generator
) -> dict[str, Array]:
    """Return inputs of these lengths: frames of the example in random order, the same for all axes of a symbol.

    So values keep the example's range, and each frame stays intact. At the example's own length the frames keep their
    order. If all floats of the example are equal, noise is drawn instead.
    """
    order = {
        symbol: np.arange(frames) if lengths[symbol] == frames else rng.integers(0, frames, lengths[symbol])
        for symbol, frames in lengths_of(samples).items()
    }
    feeds: dict[str, Array] = {}
    for name, sample in samples.items():
        value = _enliven(sample.value, rng)
        for axis, symbol in sample.axes.items():
            value = np.take(value, order[symbol], axis)
        feeds[name] = value
    return feeds


def make_louder(samples: Mapping[str, SampledInputs], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Return inputs whose floats are larger: those of the streams, or of all inputs if none streams."""
    streams = any(sample.axes for sample in samples.values())
    return {
        name: value * value.dtype.type(LOUDER)
        if value.dtype.kind == "f" and (samples[name].axes or not streams)
        else value
        for name, value in feeds.items()
    }


def _enliven(value: Array, rng: np.random.Generator) -> Array:
    """Replace floats that are all equal with noise: normal for zeros, otherwise of the same sign and mean."""
    if value.size < 2 or not np.issubdtype(value.dtype, np.floating) or (value != value.flat[0]).any():
        return value
    level = float(value.flat[0])
    noise = level * rng.uniform(0, 2, value.shape) if level else rng.standard_normal(value.shape)
    return noise.astype(value.dtype)
