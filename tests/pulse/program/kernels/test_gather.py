"""``gather`` against numpy.take, as plain Python and compiled."""

import numpy as np
import pytest

from pulse.program.kernels.gather import GatherRow
from tests.pulse.program.kernels.rows import run_both


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
    row = GatherRow(
        src=src,
        indices=indices,
        dst=dst,
        size=size,
        index_size=indices.itemsize,
        outer=outer,
        count=count,
        run=run,
        src_outer=axis * run,
        src_axis=run,
        dst_outer=(count + 1) * (run + 2),
        dst_axis=run + 2,
        axis=axis,
    )
    for arrays in run_both(row):
        np.testing.assert_array_equal(arrays["dst"], want)


@pytest.mark.parametrize("axis", [0, 4])
def test_gather_reads_nothing_outside_of_the_axis(axis: int) -> None:
    src = np.arange(axis, dtype=np.float32)
    indices = np.array([99, -99, 1 << 40, -(1 << 40), 2])
    dst = np.full(5, -1, np.float32)
    want = src[[3, 0, 3, 0, 2]] if axis else dst
    row = GatherRow(
        src=src,
        indices=indices,
        dst=dst,
        size=4,
        index_size=8,
        outer=1,
        count=5,
        run=1,
        src_outer=4,
        src_axis=1,
        dst_outer=5,
        dst_axis=1,
        axis=axis,
    )
    for arrays in run_both(row):
        np.testing.assert_array_equal(arrays["dst"], want)
