"""Rows of kernels of sixteen streams with interleaved memories against rows of each stream."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pulse.jit.language.simd import LANES
from pulse.jit.registry import Kernel
from tests.pulse.program.kernels.positional_rows import run_both, run_row

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(4)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def same(array: Array) -> tuple[Array, Array]:
    return array, array


def compare_rows(
    single: Kernel,
    several: Kernel,
    shared: Mapping[int, tuple[Array, Array]],
    own: Mapping[int, Array],
    args: Sequence[Any],
    other: Sequence[Any],
    regions_written: Sequence[int],
) -> None:
    """Each of sixteen streams in one row, and in a row of its own.

    shared   arrays by number as the kernel of one stream and that of sixteen read them
    own      arrays by number that each stream has, [16, …]
    """
    count = len(shared) + len(own)
    arrays = [own[n].T.copy() if n in own else shared[n][1] for n in range(count)]
    wanted = [
        run_row(single, [own[n][i] if n in own else shared[n][0] for n in range(count)], *args, python=False)
        for i in range(LANES)
    ]
    for after in run_both(several, arrays, *other):
        for n in regions_written:
            expected = np.stack([each[n] for each in wanted])
            np.testing.assert_allclose(after[n].T, expected, rtol=1e-4, atol=2e-5)
