"""Noise in f32: random, and the same in every run."""

import numpy as np

from pulse.facts import Array


def normal_noise(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    """Normal numbers around 0, whose standard deviation is the scale."""
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def next_noise(rng: np.random.Generator, *shape: int) -> Array:
    """Normal numbers in f32 that a generator draws next."""
    return rng.standard_normal(shape).astype(np.float32)


def quiet_noise(frames: int, seed: int = 0) -> Array:
    """Normal numbers [frames] a tenth as loud: full scale clips nothing."""
    return normal_noise(frames, seed=seed, scale=0.1)


def uniform_noise(frames: int, channels: int = 1, peak: float = 0.9) -> Array:
    """Samples [frames, channels] between the peaks; noise of another length differs."""
    samples = np.random.default_rng(frames).uniform(-peak, peak, (frames, channels))
    return samples.astype(np.float32)
