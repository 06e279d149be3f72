"""The depthwise window against numpy, as Python and compiled."""

import numpy as np
import pytest

from pulse.jit.rows.pointer import real_bits
from pulse.program.kernels.conv_depthwise import depthwise
from pulse.program.kernels.matmul_finish import STEPS
from tests.pulse.program.kernels.positional_rows import At, run_both, run_row

RNG = np.random.default_rng(2)


def window_case(M, T, C, activation):
    taps, rows_x, rows_y = RNG.permutation(T) * (C + 1), RNG.permutation(M) * 3, RNG.permutation(M) * (C + 2)
    reach = int(rows_x.max(initial=0) + taps.max(initial=0) + C)
    x, w, bias, y = (
        RNG.standard_normal(size).astype(np.float32) for size in (reach, (T, C), C, max(1, M * (C + 2)))
    )
    expected = y.copy()
    for m in range(M):
        total = bias.astype(np.float64)
        for t in range(T):
            total = total + x[rows_x[m] + taps[t] :][:C].astype(np.float64) * w[t]
        expected[rows_y[m] : rows_y[m] + C] = np.maximum(total, 0) if activation else total
    arrays = [x, w, bias, y, *(table.astype(np.int64) for table in (rows_x, rows_y, taps))]
    args = [At(0), At(3), M, At(4), At(5), T, At(6), At(1), At(2), C]
    args += [0, 0, activation]
    args += [STEPS.index("relu"), real_bits(0.0), At(0), At(4)] * activation
    return arrays, args, expected


@pytest.mark.parametrize("M", [0, 1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize(("T", "C"), [(0, 3), (1, 1), (3, 16), (5, 17), (2, 40), (9, 64), (4, 0)])
@pytest.mark.parametrize("activation", [0, 1])
def test_depthwise_agrees_with_numpy(M, T, C, activation):
    arrays, args, expected = window_case(M, T, C, activation)
    for after in run_both(depthwise, arrays, *args):
        np.testing.assert_allclose(after[3], expected, rtol=2e-6, atol=1e-5)


def test_depthwise_compiled_on_many_shapes():
    for _ in range(200):
        M, T, C = (int(RNG.integers(1, top)) for top in (18, 10, 131))
        arrays, args, expected = window_case(M, T, C, int(RNG.integers(2)))
        np.testing.assert_allclose(
            run_row(depthwise, arrays, *args, python=False)[3], expected, rtol=2e-6, atol=1e-5
        )
