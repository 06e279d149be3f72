"""Recipes over small models, written to a folder."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import pulse
from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks import models

BINS = 9
"""Bins of a spectrum of 16 samples."""


def gain() -> onnx.ModelProto:
    """A spectrum [1, 9, T, 2] times a number for each bin, as [1, 9, T, 2]."""
    size = [1, BINS, "T", 2]
    weights = {"w": np.abs(normal_noise(1, BINS, 1, 1, seed=3))}
    return models.build([node("Mul", "mix w", "enh")], {"mix": size}, {"enh": size}, weights)


def mask_model() -> onnx.ModelProto:
    """A mask [1, 1, 9] of a frame of magnitudes and a state: the mean of this frame and the one before."""
    size = [1, 1, BINS]
    nodes = [
        node("Add", "x h", "both"),
        node("Mul", "both half", "y"),
        node("Identity", "x", "hn"),
    ]
    half = {"half": np.array(0.5, np.float32)}
    return models.build(nodes, {"x": size, "h": size}, {"y": size, "hn": size}, half)


def save_model(folder: Path, name: str, model: onnx.ModelProto, rate_hz: int | None = None) -> Path:
    """A model in a file; ``rate_hz`` in its metadata."""
    if rate_hz is not None:
        entry = model.metadata_props.add()
        entry.key, entry.value = "sample_rate", str(rate_hz)
    path = folder / name
    onnx.save(model, path)
    return path


def write_recipe(folder: Path, text: str, name: str = "recipe.toml") -> Path:
    """Write a recipe; return its path."""
    path = folder / name
    path.write_text(text)
    return path


SPECTRAL = """
rate = 8000

[[stage]]
stft = { n_fft = 16, hop = 8, window = "sqrt_hann" }

[[stage]]
model = "gain.onnx"

[[stage]]
istft = { n_fft = 16, hop = 8, window = "sqrt_hann", length = "T" }
"""
"""An offline model of spectra; wants gain.onnx."""

MASKED = """
# A mask of a model of chunks, times the spectrum that it was made of.
title = "masked"

[[stage]]
frames = { size = 16, hop = 8, pad_start = 8, window = "sqrt_hann" }

[[stage]]
rfft = { n = 16, layout = "T,F,2" }
as = "spectrum"

[[stage]]
magnitude = {}

[[stage]]
model = "masking.onnx"
states = { h = "hn" }
as = ["mask"]

[[stage]]
mask = {}
from = { mask = "mask", x = "spectrum" }

[[stage]]
irfft = { n = 16, layout = "T,F,2" }

[[stage]]
overlap_add = { size = 16, hop = 8, window = "sqrt_hann", trim_end = 8 }
"""
"""A model of chunks; wants masking.onnx."""


def spectral(folder: Path) -> Path:
    """``SPECTRAL`` and its model."""
    save_model(folder, "gain.onnx", gain())
    return write_recipe(folder, SPECTRAL)


def refusal_of(path: Path) -> str:
    """Open a wrong recipe, or a model with one; return the message without the path."""
    with pytest.raises(pulse.LoadError) as raised:
        pulse.stream(path)
    message = str(raised.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def write_masked(folder: Path) -> Path:
    """Write ``MASKED`` and its model; return the path of the recipe."""
    save_model(folder, "masking.onnx", mask_model())
    return write_recipe(folder, MASKED, "masked.toml")
