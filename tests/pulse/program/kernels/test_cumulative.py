"""The kernel of running sums against numpy, as plain Python and compiled."""

import numpy as np
import pytest

from pulse.program.kernels.cumulative import CumSumRow
from pulse.program.kernels.dtypes import CODES
from pulse.support.bounds import UNBOUNDED
from tests.failed_cases import in_one_test
from tests.pulse.program.kernels.rows import run_both


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.parametrize("exclusive", [0, 1])
@in_one_test(
    ("clock", "end", "offset"),
    [(0, UNBOUNDED, 0), (1, UNBOUNDED, 2), (0, UNBOUNDED, 2), (1, 7, 0), (2, 4, 0)],
)
@pytest.mark.parametrize("reload", [0, 1])
def test_running_sums_agree_with_numpy(
    dtype: type[np.generic], exclusive: int, clock: int, end: int, offset: int, reload: int
) -> None:
    T, M = 5, 7
    rng = np.random.default_rng(T)
    x = (rng.standard_normal((T, M)) * 9).astype(dtype)
    wide = np.float64 if np.issubdtype(dtype, np.floating) else np.int64
    sums = (rng.standard_normal(M) * 9).astype(wide)
    columns = rng.permutation(M)
    total = np.zeros(M, wide) if reload and clock == 0 else sums.copy()
    expected_sums = np.zeros((T, M), wide)
    for t in range(T):
        if 0 <= clock * T - offset + t < end:
            after = total + x[t, columns]
            expected_sums[t] = total if exclusive else after
            total = after
    row = CumSumRow(
        x=x,
        y=np.ones((T, M), dtype),
        sums=sums,
        dtype=CODES[np.dtype(dtype)],
        T=T,
        M=M,
        columns_x=columns,
        columns_y=np.arange(M),
        step_x=M,
        step_y=M,
        exclusive=exclusive,
        reverse=False,
        clock=np.array([clock]),
        end=np.array([end]),
        offset=offset,
        reload=reload,
    )
    python, compiled = run_both(row)
    np.testing.assert_allclose(compiled["y"], expected_sums.astype(dtype), rtol=1e-6)
    np.testing.assert_allclose(compiled["sums"], total, rtol=1e-12)
    for output, expected in ((python["y"], expected_sums.astype(dtype)), (python["sums"], total)):
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)  # numpy adds a float32 as such
