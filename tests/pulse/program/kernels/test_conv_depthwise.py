"""The depthwise window against numpy, as Python and compiled."""

import numpy as np
import pytest

from pulse.program.kernels.conv_depthwise import DepthwiseRow
from tests.failed_cases import in_one_test
from tests.noise import next_noise
from tests.pulse.program.kernels.groups import epilogue_of, epilogue_step
from tests.pulse.program.kernels.rows import run_both, run_row


def window_case(rng: np.random.Generator, M, T, C, activation):
    taps, rows_x, rows_y = rng.permutation(T) * (C + 1), rng.permutation(M) * 3, rng.permutation(M) * (C + 2)
    reach = int(rows_x.max(initial=0) + taps.max(initial=0) + C)
    sizes = (reach,), (T, C), (C,), (max(1, M * (C + 2)),)
    x, w, bias, y = (next_noise(rng, *size) for size in sizes)
    expected = y.copy()
    for m in range(M):
        total = bias.astype(np.float64)
        for t in range(T):
            total = total + x[rows_x[m] + taps[t] :][:C].astype(np.float64) * w[t]
        expected[rows_y[m] : rows_y[m] + C] = np.maximum(total, 0) if activation else total
    rows_x, rows_y, taps = (table.astype(np.int64) for table in (rows_x, rows_y, taps))
    row = DepthwiseRow(
        x=x,
        y=y,
        M=M,
        rows_x=rows_x,
        rows_y=rows_y,
        T=T,
        taps=taps,
        W=w,
        bias=bias,
        C=C,
        epilogue=epilogue_of([epilogue_step("relu", x, rows_x)] * activation),
    )
    return row, expected


@in_one_test("M", [0, 1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize(("T", "C"), [(0, 3), (1, 1), (3, 16), (5, 17), (2, 40), (9, 64), (4, 0)])
@pytest.mark.parametrize("activation", [0, 1])
def test_depthwise_agrees_with_numpy(
    rng: np.random.Generator, M: int, T: int, C: int, activation: int
) -> None:
    row, expected = window_case(rng, M, T, C, activation)
    for after in run_both(row):
        np.testing.assert_allclose(after["y"], expected, rtol=2e-6, atol=1e-5)


def test_depthwise_of_random_shapes_agrees_with_numpy(rng: np.random.Generator) -> None:
    for _ in range(200):
        M, T, C = (int(rng.integers(1, top)) for top in (18, 10, 131))
        row, expected = window_case(rng, M, T, C, int(rng.integers(2)))
        np.testing.assert_allclose(run_row(row, python=False)["y"], expected, rtol=2e-6, atol=1e-5)
