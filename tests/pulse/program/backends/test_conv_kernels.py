"""The algorithms of convolutions in numpy against the op's own definition."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pulse.dim import TDim
from pulse.ops.conv import Conv
from pulse.program.backends.conv_kernels import (
    convolve_by_transforms,
    convolve_by_windows,
    convolve_directly,
)
from tests.noise import next_noise

ALGORITHMS = [convolve_directly, convolve_by_transforms, convolve_by_windows]
Algorithm = Callable[[Conv, Sequence[np.ndarray]], list[np.ndarray]]


def conv(strides: tuple[int, ...], dilations: tuple[int, ...], pads: tuple[int, int], group: int) -> Any:
    before, after = (TDim.of(count) for count in pads)
    return Conv(strides, dilations, ((before, after),) * len(strides), group)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("pads", [(0, 0), (2, 1)])
@pytest.mark.parametrize(("strides", "dilations"), [((1,), (1,)), ((3,), (2,)), ((1, 2), (2, 1))])
def test_algorithms_agree_with_the_definition(
    rng: np.random.Generator,
    algorithm: Algorithm,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: tuple[int, int],
    group: int,
) -> None:
    spatial = len(strides)
    inputs = (
        next_noise(rng, 2, 4, *(13,) * spatial),
        next_noise(rng, 6, 4 // group, *(3,) * spatial),
        next_noise(rng, 6),
    )
    op = conv(strides, dilations, pads, group)
    (expected,), (y,) = op.eval(inputs, {}), algorithm(op, inputs)
    assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_nan_reaches_only_the_frames_of_its_windows(rng: np.random.Generator, algorithm: Algorithm) -> None:
    x, w = next_noise(rng, 1, 1, 12), next_noise(rng, 1, 1, 3)
    x[0, 0, 6] = np.nan
    (y,) = algorithm(conv((1,), (1,), (0, 0), 1), (x, w))
    assert np.flatnonzero(np.isnan(y)).tolist() == [4, 5, 6]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_input_shorter_than_the_kernel_gives_no_frames(
    rng: np.random.Generator, algorithm: Algorithm
) -> None:
    x, w = next_noise(rng, 1, 2, 3), next_noise(rng, 4, 2, 5)
    (y,) = algorithm(conv((1,), (1,), (0, 0), 1), (x, w))
    assert y.shape == (1, 4, 0)
