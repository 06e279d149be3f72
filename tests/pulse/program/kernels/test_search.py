"""``top_k`` against a stable sort, as plain Python and compiled."""

import numpy as np
import pytest

from pulse.ops.search import TopK
from pulse.program.kernels.search import TopKRow
from tests.pulse.program.kernels.rows import Array, run_both


def assert_agrees_with_a_stable_sort(x: Array, count: int, largest: bool) -> None:
    """Rows of x [M, R] that lie side by side in memory, results with a gap between entries."""
    rows, size = x.shape
    values, indices = np.full((rows, count * 2), 7, np.float32), np.full((rows, count * 2), 7)
    rows_x, rows_y = np.arange(rows), np.arange(rows) * count * 2
    largest_values, places = TopK(1, count, largest).eval([x], {})
    row = TopKRow(
        x=x.T,
        values=values,
        indices=indices,
        M=rows,
        rows_x=rows_x,
        rows_y=rows_y,
        R=size,
        stride=rows,
        K=count,
        step=2,
        largest=largest,
    )
    for results in run_both(row):
        np.testing.assert_array_equal(results["values"][:, ::2], largest_values)
        np.testing.assert_array_equal(results["indices"][:, ::2], places)
        assert (results["values"][:, 1::2] == 7).all()


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    ("rows", "size", "count"), [(1, 1, 1), (3, 9, 2), (4, 17, 17), (2, 40, 5), (0, 3, 1), (2, 3, 0)]
)
def test_the_largest_elements_agree_with_numpy(rows: int, size: int, count: int, largest: bool) -> None:
    rng = np.random.default_rng(size)
    assert_agrees_with_a_stable_sort(
        np.round(rng.standard_normal((rows, size)) * 2).astype(np.float32), count, largest
    )


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("count", [1, 3, 7])
def test_nan_counts_as_larger_than_any_number(largest: bool, count: int) -> None:
    nan, inf = np.nan, np.inf
    x = np.array([[1, nan, inf, -inf, nan, 0.0, -0.0]], np.float32)
    assert_agrees_with_a_stable_sort(x, count, largest)
