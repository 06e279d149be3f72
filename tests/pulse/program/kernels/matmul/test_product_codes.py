"""Products of codes with codes: equal to numpy's, as Python and compiled, however rows are cut.

A processor without fused products rounds once more: its results differ from those of plain Python by a unit.
"""

from dataclasses import replace

import numpy as np
import pytest

from pulse.ops.quantize_activations import round_to_form
from pulse.ops.weight_units import UnitLayout
from pulse.program.kernels.matmul.product_codes import ProductOfCodesRow, pack_codes
from pulse.program.weights import store
from tests.noise import next_noise
from tests.pulse.program.kernels.groups import epilogue_of, epilogue_step
from tests.pulse.program.kernels.rows import ArrayPart, run_both, run_row


def case(rng: np.random.Generator, M, T, K, N, accumulate=0, activation=0, form="int8"):
    """The row and the expected y of a product of codes."""
    taps = rng.permutation(T) * (K + 3)
    rows_x, rows_y = rng.permutation(M) * 5, rng.permutation(M) * (N + 3)
    x, bias, y = (
        next_noise(rng, int(rows_x.max() + taps.max() + K)),
        next_noise(rng, N),
        next_noise(rng, M * (N + 3)),
    )
    stored = store(next_noise(rng, T * K, N), form, UnitLayout((T * K, N), (0,)))
    scales = np.zeros(1, np.float32) if form == "bf16" else stored.scales_of()
    expected = y.copy()
    for m in range(M):
        windows = [round_to_form(x[rows_x[m] + tap :][:K], form) for tap in taps]
        total = np.concatenate(windows).astype(np.float64) @ stored.values
        total += bias + (y[rows_y[m] :][:N] if accumulate else 0)
        expected[rows_y[m] : rows_y[m] + N] = np.maximum(total, 0) if activation else total
    rows_x, rows_y = rows_x.astype(np.int64), rows_y.astype(np.int64)
    row = ProductOfCodesRow(
        x=x,
        y=y,
        M=M,
        rows_x=rows_x,
        rows_y=rows_y,
        T=T,
        taps=taps.astype(np.int64),
        K=K,
        N=N,
        accumulate=accumulate,
        W=pack_codes(stored.codes, T),
        bias=bias,
        scales=scales,
        epilogue=epilogue_of([epilogue_step("relu", x, rows_x)] * activation),
    )
    assert row.form == form
    return row, expected


SHAPES = [
    (1, 1, 48, 32), (1, 1, 17, 16), (2, 3, 21, 33), (4, 1, 19, 64), (5, 3, 16, 81), (7, 2, 33, 130),
    (1, 2, 64, 97), (1, 1, 4096, 16), (4, 1, 4095, 17), (6, 4, 40, 64), (3, 1, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(("M", "T", "K", "N"), SHAPES)
@pytest.mark.parametrize(("accumulate", "activation"), [(0, 0), (1, 1)])
@pytest.mark.parametrize("form", ["int8", "bf16"])
def test_products_of_codes_agree_with_numpy(
    rng: np.random.Generator, M: int, T: int, K: int, N: int, accumulate: int, activation: int, form: str
) -> None:
    row, expected = case(rng, M, T, K, N, accumulate, activation, form)
    python, compiled = (after["y"] for after in run_both(row))
    np.testing.assert_allclose(compiled, expected, rtol=1e-5, atol=1e-5 * (T * K) ** 0.5)
    np.testing.assert_allclose(python, compiled, 2e-7, 2e-7 * (T * K) ** 0.5)


@pytest.mark.parametrize("form", ["int8", "bf16"])
def test_rows_are_bit_identical_alone_and_in_blocks(rng: np.random.Generator, form: str) -> None:
    row, _ = case(rng, 9, 2, 37, 147, form=form)
    together = run_row(row, python=False)["y"]
    for m in range(9):
        alone = replace(row, M=1, rows_x=ArrayPart(row.rows_x, m), rows_y=ArrayPart(row.rows_y, m))
        after = run_row(alone, python=False)["y"]
        start = int(row.rows_y[m])
        np.testing.assert_array_equal(after[start : start + 147], together[start : start + 147])


@pytest.mark.parametrize("M", [1, 4])
def test_a_nan_of_a_bf16_row_reaches_its_sums_and_no_others(rng: np.random.Generator, M: int) -> None:
    row, expected = case(rng, M, 1, 24, 40, form="bf16")
    row_start = int(row.rows_x[M - 1])
    row.x[row_start + 23 if M > 1 else row_start] = np.nan
    for after in run_both(row):
        for m in range(M):
            columns = slice(int(row.rows_y[m]), int(row.rows_y[m]) + 40)
            is_bad = np.isnan(row.x[int(row.rows_x[m]) :][:24]).any()
            np.testing.assert_allclose(
                after["y"][columns], np.nan if is_bad else expected[columns], 1e-5, 1e-4
            )


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("M", [1, 4])
def test_a_row_with_an_infinity_or_nan_is_nan_and_no_other_is(
    rng: np.random.Generator, bad: float, M: int
) -> None:
    row, _ = case(rng, M, 1, 24, 40)
    row_start = int(row.rows_x[M - 1])
    row.x[:] = 0
    row.x[row_start + (0 if M == 1 else 23)] = bad
    for after in run_both(row):
        for m in range(M):
            inside = row.x[int(row.rows_x[m]) :][:24]
            sums = after["y"][int(row.rows_y[m]) :][:40]
            expected = np.full(40, np.nan) if not np.isfinite(inside).all() else row.bias
            np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize("size", [0.0, 1e-38, 1e-30, 1e-28, 1e37])
def test_tiny_rows_become_zeros_and_large_rows_stay_finite(rng: np.random.Generator, size: float) -> None:
    row, _ = case(rng, 1, 1, 32, 16)
    row.x[:] = row.x / np.abs(row.x).max() * np.float32(size)
    values = round_to_form(row.x[int(row.rows_x[0]) :][:32])
    assert (np.abs(values).max() > 0) == (size > 2.0**-96)
    stored = row.W.view(np.uint8).reshape(8, 16, 4).transpose(0, 2, 1).reshape(32, 16).astype(np.int16) - 128
    expected = values.astype(np.float64) @ (stored * row.scales.astype(np.float64)) + row.bias
    for after in run_both(row):
        np.testing.assert_allclose(after["y"][:16], expected, 1e-5, 1e-5 * max(1.0, size))
