"""``scatter`` against numpy, as plain Python and compiled."""

import numpy as np
import pytest

from pulse.program.kernels.scatter import ScatterRow
from tests.pulse.program.kernels.rows import run_both


@pytest.mark.parametrize(("rows", "run", "count"), [(5, 1, 7), (9, 40, 4), (3, 2, 0), (2, 0, 3)])
def test_scattered_rows_agree_with_numpy(rows: int, run: int, count: int) -> None:
    """If several rows have one place, the last one stays."""
    rng = np.random.default_rng(run)
    dst, src = rng.standard_normal((rows, run)), rng.standard_normal((count, run))
    indices = rng.integers(0, rows, count)
    want = dst.copy()
    for index, update in zip(indices, src):
        want[index] = update
    row = ScatterRow(dst=dst, indices=indices, src=src, size=run * 8, count=count, rows=rows)
    for arrays in run_both(row):
        np.testing.assert_array_equal(arrays["dst"], want)


def test_updates_outside_of_the_rows_are_dropped() -> None:
    dst, src = np.zeros(3, np.float32), np.ones(4, np.float32)
    indices = np.array([-1, 3, 1 << 40, 1])
    for arrays in run_both(ScatterRow(dst=dst, indices=indices, src=src, size=4, count=4, rows=3)):
        np.testing.assert_array_equal(arrays["dst"], [0, 1, 0])
