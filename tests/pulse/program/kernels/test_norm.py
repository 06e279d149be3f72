"""Softmax and layer normalisation against numpy in float64, as plain Python and compiled."""

import numpy as np
import pytest

from pulse.program.kernels.norm import LayerNormRow, SoftmaxRow
from tests.failed_cases import in_one_test
from tests.pulse.program.kernels.rows import run_both

COUNTS = [0, 1, 2, 15, 16, 17, 64, 80, 200, 512]


def softmax(x: np.ndarray, log: int) -> np.ndarray:
    wide = x.astype(np.float64)
    if not wide.size:
        return wide
    with np.errstate(invalid="ignore", divide="ignore"):
        shifted = wide - wide.max(1, keepdims=True)
        total = np.exp(shifted).sum(1, keepdims=True)
        return shifted - np.log(total) if log else np.exp(shifted) / total


def assert_softmax(x: np.ndarray, log: int) -> None:
    rows, count = x.shape
    y = np.full((rows, count + 1), 5, np.float32)
    want = y.copy()
    want[:, :count] = softmax(x, log)
    rows_x, rows_y = np.arange(rows) * count, np.arange(rows) * (count + 1)
    row = SoftmaxRow(x=x, y=y, M=rows, rows_x=rows_x, rows_y=rows_y, R=count, log=log)
    for results in run_both(row):
        np.testing.assert_allclose(results["y"], want, rtol=4e-6, atol=1e-6 if log else 1e-30)


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize("rows", [0, 1, 3])
@in_one_test("count", COUNTS)
def test_softmax_agrees_with_numpy(log: int, rows: int, count: int) -> None:
    assert_softmax(np.random.default_rng(count).normal(0, 5, (rows, count)).astype(np.float32), log)


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize("count", [1, 7, 16, 40])
def test_softmax_of_masked_and_large_numbers_agrees_with_numpy(log: int, count: int) -> None:
    x = np.random.default_rng(count).normal(0, 1, (6, count)).astype(np.float32)
    x[0, : count // 2] = -np.inf
    x[1] = -np.inf
    x[2] += 3e38
    x[3, 0] = np.nan
    x[4, :1] = 300
    x[5, :1] = np.inf
    assert_softmax(x, log)


def test_softmax_of_a_masked_element_is_zero() -> None:
    x = np.array([[0, -np.inf, -1e30]], np.float32)
    rows = np.zeros(1, np.int64)
    for arrays in run_both(SoftmaxRow(x=x, y=x, M=1, rows_x=rows, rows_y=rows, R=3, log=False)):
        np.testing.assert_array_equal(arrays["y"], [[1, 0, 0]])


@pytest.mark.parametrize("rows", [0, 1, 3])
@in_one_test("count", COUNTS)
@pytest.mark.parametrize("mean", [0.0, 100.0])
def test_layer_norm_agrees_with_numpy(rows: int, count: int, mean: float) -> None:
    rng = np.random.default_rng(count)
    x = rng.normal(mean, 2, (rows, count)).astype(np.float32)
    scale, bias = (rng.normal(0, 1, count).astype(np.float32) for _ in range(2))
    y = np.full((rows, count + 1), 5, np.float32)
    want = y.copy()
    if x.size:
        wide = x.astype(np.float64)
        spread = np.sqrt(wide.var(1, keepdims=True) + 1e-5)
        want[:, :count] = (wide - wide.mean(1, keepdims=True)) / spread * scale + bias
    row = LayerNormRow(
        x=x,
        y=y,
        M=rows,
        rows_x=np.arange(rows) * count,
        rows_y=np.arange(rows) * (count + 1),
        R=count,
        scale=scale,
        bias=bias,
        eps=1e-5,
    )
    for results in run_both(row):
        np.testing.assert_allclose(results["y"], want, rtol=1e-5, atol=2e-5)
