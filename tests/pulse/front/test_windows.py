"""Windows, written once more from their definitions."""

import inspect
import math
from functools import partial

import numpy as np
import pytest

from pulse import front
from pulse.facts import Array
from pulse.front.windows import NAMES, centre, window_values
from tests.pulse.front import references
from tests.pulse.front.stream_checks import assert_refused


def by_hand(name: str, size: int, periodic: bool, beta: float) -> Array:
    steps = size if periodic else size - 1
    values: list[float] = []
    for n in range(size):
        t = n / steps
        cos = [math.cos(2 * math.pi * k * t) for k in range(3)]
        values.append(
            {
                "hann": 0.5 - 0.5 * cos[1],
                "hamming": 0.54 - 0.46 * cos[1],
                "blackman": 0.42 - 0.5 * cos[1] + 0.08 * cos[2],
                "povey": (0.5 - 0.5 * cos[1]) ** 0.85,
                "bartlett": 2 * t if t < 0.5 else 2 - 2 * t,
                "kaiser": float(np.i0(beta * math.sqrt(max(0.0, 1 - (2 * t - 1) ** 2))) / np.i0(beta)),
                "vorbis": math.sin(math.pi / 2 * math.sin(math.pi * (n + 0.5) / size) ** 2),
                "ones": 1.0,
            }[name]
        )
    return np.array(values)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("size", [7, 400])
def test_windows_agree_with_their_formulas(name: str, periodic: bool, size: int) -> None:
    expected = by_hand(name, size, periodic, 8.0)
    np.testing.assert_allclose(window_values("w", name, size, periodic, 8.0), expected, atol=1e-12)
    roots = window_values("w", f"sqrt_{name}", size, periodic, 8.0)
    np.testing.assert_allclose(roots, np.sqrt(np.maximum(expected, 0)), atol=1e-7)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("periodic", [True, False])
def test_torch_has_the_same(name: str, periodic: bool) -> None:
    torch = references.torch()
    window = getattr(torch, f"{name}_window")(320, periodic=periodic, dtype=torch.float64)
    np.testing.assert_allclose(window_values("w", name, 320, periodic), window.numpy(), atol=1e-9)


def test_windows_may_be_one_sample_none_or_numbers() -> None:
    for name in NAMES:
        np.testing.assert_allclose(window_values("w", name, 1, False), 1.0)
    np.testing.assert_array_equal(window_values("w", None, 3), np.ones(3))
    np.testing.assert_array_equal(window_values("w", [1, 2, 3.5], 3), [1, 2, 3.5])
    np.testing.assert_array_equal(centre(np.ones(3), 6), [0, 1, 1, 1, 0, 0])


@pytest.mark.parametrize(
    ("window", "size", "message"),
    [
        ("han", 4, "must be one of hann"),
        ([1, 2], 4, "must be 4 finite ones, got shape [2]"),
        ([1, float("nan")], 2, "finite"),
        ("hann", 0, "the window's length=0 must be an integer from 1"),
        (["a"], 1, "finite"),
    ],
)
def test_window_values_refuses_bad_arguments(window: object, size: int, message: str) -> None:
    assert_refused(partial(window_values, "stft", window, size), message)


def test_each_front_with_a_window_has_its_beta() -> None:
    for function in front.FUNCTIONS.values():
        parameters = inspect.signature(function).parameters
        assert ("periodic" in parameters) == ("beta" in parameters)
    output = front.frames(8, 4, window="kaiser", beta=3.0).run(np.ones((1, 8), np.float32))["frames"]
    np.testing.assert_allclose(output[0, 0], by_hand("kaiser", 8, True, 3.0), atol=1e-6)
