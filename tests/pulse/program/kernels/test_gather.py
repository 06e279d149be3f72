"""``gather`` against numpy.take, as plain Python and compiled."""

import numpy as np
import pytest

from pulse.program.kernels.gather import gather
from tests.pulse.program.kernels.positional_rows import At, run_both


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("outer", "axis", "run", "count"),
    [
        (1, 5, 1, 7),
        (1, 9, 40, 4),
        (3, 5, 1, 7),
        (3, 5, 6, 4),
        (2, 4, 33, 9),
        (0, 3, 2, 2),
        (2, 3, 2, 0),
        (2, 3, 0, 2),
    ],
)
def test_gather_agrees_with_numpy(
    size: int, index_type: type, outer: int, axis: int, run: int, count: int
) -> None:
    rng = np.random.default_rng(size + run)
    src = rng.integers(0, 100, (outer, axis, run)).astype(f"i{size}")
    indices = rng.integers(-axis, axis, count).astype(index_type)
    dst = np.full((outer, count + 1, run + 2), 7, f"i{size}")
    want = dst.copy()
    want[:, :count, :run] = np.take(src, indices, 1)
    strides = (axis * run, run, (count + 1) * (run + 2), run + 2)
    args = (size, indices.itemsize, outer, count, run, *strides, axis)
    for arrays in run_both(gather, [src, indices, dst], At(0), At(1), At(2), *args):
        np.testing.assert_array_equal(arrays[2], want)


@pytest.mark.parametrize("axis", [0, 4])
def test_gather_reads_nothing_outside_of_the_axis(axis: int) -> None:
    src = np.arange(axis, dtype=np.float32)
    indices = np.array([99, -99, 1 << 40, -(1 << 40), 2])
    dst = np.full(5, -1, np.float32)
    want = src[[3, 0, 3, 0, 2]] if axis else dst
    for arrays in run_both(gather, [src, indices, dst], At(0), At(1), At(2), 4, 8, 1, 5, 1, 4, 1, 5, 1, axis):
        np.testing.assert_array_equal(arrays[2], want)
