"""Windows: the weights of the samples of a frame."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.front.parameter_checks import require_count, require_flag, require_number

WindowLike: TypeAlias = str | Sequence[float] | None
"""A name of ``WINDOWS``, with the prefix ``sqrt_`` for its root; numbers; None: all ones."""


def _cosines(*terms: float) -> Callable[[Array, float], Array]:
    """Return a sum of cosines of 0, 1, 2 … periods."""

    def values(position: Array, beta: float) -> Array:
        return np.sum([term * np.cos(2 * np.pi * k * position) for k, term in enumerate(terms)], axis=0)

    return values


def _kaiser(position: Array, beta: float) -> Array:
    return np.i0(beta * np.sqrt(np.maximum(0, 1 - (2 * position - 1) ** 2))) / np.i0(beta)


WINDOWS: dict[str, Callable[[Array, float], Array]] = {
    "hann": _cosines(0.5, -0.5),
    "hamming": _cosines(0.54, -0.46),
    "blackman": _cosines(0.42, -0.5, 0.08),
    "povey": lambda position, beta: np.maximum(0, 0.5 - 0.5 * np.cos(2 * np.pi * position)) ** 0.85,
    "bartlett": lambda position, beta: 1 - np.abs(2 * position - 1),
    "kaiser": _kaiser,
    "ones": lambda position, beta: np.ones_like(position),
}
"""By name: the values at the positions 0 … 1, ``n / N`` of a periodic window and ``n / (N - 1)`` of a symmetric one."""
NAMES = (*WINDOWS, "vorbis")


def window_values(
    function: str, window: WindowLike, size: int, periodic: bool = True, beta: float = 12.0
) -> Array:
    """Return a window of ``size`` samples, f64.

    periodic  periodic, for a Fourier transform (``torch.hann_window``, ``scipy.signal.get_window``); else symmetric
    beta      shape parameter of a kaiser window
    Raises    InputError: no such window, numbers that are not ``size`` finite ones
    """
    require_count(function, "the window's length", size)
    require_flag(function, "periodic", periodic)
    require_number(function, "beta", beta, 0)
    if window is None:
        return np.ones(size)
    if not isinstance(window, str):
        return _read_given(function, window, size)
    name = window.removeprefix("sqrt_")
    if name not in NAMES:
        raise InputError(
            f"{function}: window={window!r} must be one of {', '.join(NAMES)}, one with prefix 'sqrt_', numbers, or "
            "None"
        )
    if name == "vorbis":
        values = np.sin(np.pi / 2 * np.sin(np.pi * (np.arange(size) + 0.5) / size) ** 2)
    else:
        steps = size if periodic else size - 1
        position = np.arange(size) / steps if steps else np.full(1, 0.5)
        values = WINDOWS[name](position, beta)
    values = np.where(np.abs(values) < 1e-15, 0, values)
    if name == window:
        return values
    if values.min() < 0:
        raise InputError(f"{function}: window={window!r} has no root: {name} is negative somewhere")
    return np.sqrt(values)


def _read_given(function: str, window: Sequence[float], size: int) -> Array:
    try:
        values = np.asarray(window, np.float64)
    except (TypeError, ValueError):
        values = np.zeros((0, 0))
    if values.shape != (size,) or not np.isfinite(values).all():
        raise InputError(
            f"{function}: a window given as numbers must be {size} finite ones, got shape {list(values.shape)}"
        )
    return values


def centre(values: Array, size: int) -> Array:
    """Return a window with zeros around it, as ``torch.stft`` and librosa put a short one into a long frame."""
    before = (size - len(values)) // 2
    return np.pad(values, (before, size - len(values) - before))
