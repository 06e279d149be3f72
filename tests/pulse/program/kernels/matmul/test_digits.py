"""Products of single rows with codes: as exact as float32 sums, whatever the row is."""

import numpy as np
import pytest

from pulse.program.kernels.matmul.digits import MAX_DIGIT_ROW
from pulse.program.kernels.matmul.product import ProductRow
from pulse.program.kernels.matmul.product_blocks import pack_product
from tests.noise import next_noise
from tests.pulse.program.kernels.groups import epilogue_of
from tests.pulse.program.kernels.rows import run_both, run_row


def outputs(x: np.ndarray, taps: list[int], K: int, w: np.ndarray, python: bool) -> list[np.ndarray]:
    """The rows of x, [M, …], times the codes w [T * K, N], without bias and with scales of 1."""
    M, N = len(x), w.shape[1]
    row = ProductRow(
        x=x,
        y=np.zeros((M, N), np.float32),
        M=M,
        rows_x=np.arange(M, dtype=np.int64) * x.shape[1],
        rows_y=np.arange(M, dtype=np.int64) * N,
        T=len(taps),
        taps=np.array(taps, np.int64),
        K=K,
        N=N,
        accumulate=False,
        W=pack_product(w),
        bias=np.zeros(N, np.float32),
        scales=np.ones(N, np.float32),
        epilogue=epilogue_of(),
    )
    assert row.form == "int8"
    return [after["y"] for after in (run_both(row) if python else [run_row(row, python=False)])]


def codes(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-127, 128, shape).astype(np.int8)


@pytest.mark.parametrize(
    ("M", "T", "K", "N"), [(1, 1, 256, 96), (2, 2, 19, 40), (1, 3, 7, 16), (2, 1, 64, 50)]
)
def test_sums_round_less_than_those_of_float32(
    rng: np.random.Generator, M: int, T: int, K: int, N: int
) -> None:
    """Within two units in the last place of the sum of the magnitudes; large and small elements in one row."""
    taps = [t * (K + 1) for t in range(T)][::-1]
    w = codes(rng, T * K, N)
    x = next_noise(rng, M, T * (K + 1)) * np.float32(10) ** rng.integers(-4, 5, (M, T * (K + 1))).astype(
        np.float32
    )
    windows = np.concatenate([x[:, tap : tap + K] for tap in taps], axis=1).astype(np.float64)
    expected, magnitudes = windows @ w, np.abs(windows) @ np.abs(w.astype(np.float64))
    for y in outputs(x, taps, K, w, python=True):
        assert (np.abs(y - expected) <= 2.0**-22 * magnitudes).all()


@pytest.mark.parametrize("scale", [0.0, 2.0**-100, 2.0**-96, 2.0**110])
def test_sums_of_very_small_and_large_rows_are_accurate(rng: np.random.Generator, scale: float) -> None:
    x, w = next_noise(rng, 1, 33) * np.float32(scale), codes(rng, 33, 20)
    expected = x.astype(np.float64) @ w
    for y in outputs(x, [0], 33, w, python=True):
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("K", [MAX_DIGIT_ROW, MAX_DIGIT_ROW + 4])
def test_rows_longer_than_the_memory_of_digits_are_accurate(rng: np.random.Generator, K: int) -> None:
    x, w = next_noise(rng, 1, K), codes(rng, K, 33)
    (y,) = outputs(x, [0], K, w, python=False)
    np.testing.assert_allclose(y, x.astype(np.float64) @ w, rtol=0, atol=0.2)


@pytest.mark.parametrize("column", [0, 5, 32])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_infinities_and_nan_reach_the_sums_of_their_row_alone(
    rng: np.random.Generator, value: float, column: int
) -> None:
    """Any element may be infinite or NaN, also one of the last, which have no digits; the other row stays finite."""
    x, w = next_noise(rng, 2, 33), codes(rng, 33, 40)
    w[column, 3] = 5
    x[1, column] = value
    with np.errstate(invalid="ignore"):
        expected = x @ w.astype(np.float32)
    for y in outputs(x, [0], 33, w, python=True):
        np.testing.assert_array_equal(np.isnan(y), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(y), np.isinf(expected))
        np.testing.assert_allclose(y[0], expected[0], rtol=1e-4, atol=1e-3)
