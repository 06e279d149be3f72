"""Attention to all rows at hand, as plain Python and compiled, against numpy."""

import numpy as np
import pytest

from pulse.program.kernels.attention_whole import WholeAttentionRow, scratch_size
from tests.failed_cases import in_one_test
from tests.noise import normal_noise
from tests.pulse.program.kernels.rows import run_both

BATCHES = 2


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, by_column: bool) -> list[np.ndarray]:
    """The results [batches, rows, width], with a column between the rows that nothing writes."""
    (_, rows, depth), (_, keys, width) = q.shape, v.shape
    columns = [np.ascontiguousarray(x.transpose(0, 2, 1)) for x in (q, k)]
    y = np.full((BATCHES, rows, width + 1), 7, np.float32)
    row = WholeAttentionRow(
        q=columns[0],
        k=columns[1] if by_column else k,
        v=v,
        y=y,
        scratch=np.zeros(scratch_size(BATCHES, rows, keys), np.float32),
        B=BATCHES,
        **{f"batch_{name}": np.arange(BATCHES) * x[0].size for name, x in zip("qkvy", (q, k, v, y))},
        M=rows,
        N=keys,
        K=depth,
        D=width,
        qk=rows,
        kn=1 if by_column else depth,
        kk=keys if by_column else 1,
        vn=width,
        ym=width + 1,
        scale=scale,
    )
    results = [after["y"] for after in run_both(row)]
    assert all((output[..., width] == 7).all() for output in results)
    return [output[..., :width] for output in results]


def numbers(*shape: int) -> np.ndarray:
    return normal_noise(*shape, seed=shape)


@in_one_test("rows", [1, 8, 16, 24, 35])
@in_one_test("keys", [1, 7, 8, 24])
@pytest.mark.parametrize("depth", [1, 9])
@pytest.mark.parametrize("width", [1, 9, 20])
def test_attention_of_any_size_agrees_with_numpy(rows: int, keys: int, depth: int, width: int) -> None:
    q, k, v = numbers(BATCHES, rows, depth), numbers(BATCHES, keys, depth), numbers(BATCHES, keys, width)
    expected = softmax(0.4 * q @ k.transpose(0, 2, 1)) @ v
    for output in attend(q, k, v, 0.4, by_column=(rows + keys) % 2 == 0):
        np.testing.assert_allclose(output, expected, 1e-5, 1e-6)


def test_large_scores_do_not_overflow() -> None:
    """The largest score is subtracted before the exponential."""
    q, k, v = np.full((BATCHES, 8, 4), 100, np.float32), numbers(BATCHES, 8, 4), numbers(BATCHES, 8, 2)
    k[:, 5] = 40
    for output in attend(q, k, v, 1.0, by_column=False):
        np.testing.assert_array_equal(output, np.repeat(v[:, 5:6], 8, axis=1))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_nan_changes_only_its_row() -> None:
    q, k, v = numbers(BATCHES, 20, 3), numbers(BATCHES, 9, 3), numbers(BATCHES, 9, 4)
    q[1, 17, 2] = np.nan
    for output in attend(q, k, v, 1.0, by_column=False):
        assert np.isnan(output[1, 17]).all()
        assert np.isfinite(np.delete(output.reshape(40, 4), 37, axis=0)).all()
