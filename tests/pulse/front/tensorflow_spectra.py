"""Spectra and cepstra as TensorFlow computes them."""

import math

import numpy as np

from pulse.facts import Array


def powers(x: Array, size: int, stride: int) -> Array:
    """``[frames, bins]`` of one signal."""
    window = 0.5 - 0.5 * np.cos(2 * math.pi * np.arange(size) / size)
    rows = [x[0, start : start + size] * window for start in range(0, x.shape[1] - size + 1, stride)]
    return np.abs(np.fft.rfft(np.array(rows), 1 << (size - 1).bit_length())) ** 2


def mel(hz: float) -> float:
    return 1127 * math.log1p(hz / 700)


def bands(spectrum: Array, rate: float, count: int, low: float, high: float) -> Array:
    """``MfccMelFilterbank::Compute``, of one frame."""
    centres = [mel(low) + (mel(high) - mel(low)) / (count + 1) * (i + 1) for i in range(count + 1)]
    step = 0.5 * rate / (len(spectrum) - 1)
    y, channel = np.zeros(count), 0
    for i in range(int(1.5 + low / step), int(high / step) + 1):
        position = mel(i * step)
        while channel < count and centres[channel] < position:
            channel += 1
        below = channel - 1
        if below >= 0:
            weight = (centres[below + 1] - position) / (centres[below + 1] - centres[below])
            y[below] += math.sqrt(spectrum[i]) * weight
        else:
            weight = (centres[0] - position) / (centres[0] - mel(low))
        if below + 1 < count:
            y[below + 1] += math.sqrt(spectrum[i]) * (1 - weight)
    return y


def cepstrum(spectra: Array, rate: float, count: int, coefficients: int, low: float, high: float) -> Array:
    logs = np.log(np.maximum([bands(row, rate, count, low, high) for row in spectra], 1e-12))
    table = np.cos(math.pi / count * np.outer(np.arange(count) + 0.5, np.arange(coefficients)))
    return logs @ table * math.sqrt(2 / count)
