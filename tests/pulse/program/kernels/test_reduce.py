"""Pools and reductions against numpy, as plain Python and compiled."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.pool import PoolRow
from pulse.program.kernels.reduce import (
    MAX,
    MIN,
    PROD,
    SQUARES,
    SUM,
    ArgReduce64Row,
    ArgReduceRow,
    Reduce64Row,
    ReduceRow,
)
from tests.failed_cases import in_one_test
from tests.pulse.program.kernels.rows import run_both


def sum_of_squares(x: np.ndarray, axis: int) -> np.ndarray:
    return np.sum(x * x, axis=axis)


REDUCTIONS: Mapping[int, tuple[Callable[..., np.ndarray], float]] = {
    SUM: (np.sum, 0.0),
    MAX: (np.max, -np.inf),
    MIN: (np.min, np.inf),
    PROD: (np.prod, 1.0),
    SQUARES: (sum_of_squares, 0.0),
}
"""The kernel's code -> numpy's function, and its value for no element."""
NAMES = {SUM: "sum", MAX: "max", MIN: "min", PROD: "prod", SQUARES: "squares"}


def floats(shape: tuple[int, ...], special: bool = False) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    x = rng.uniform(-1.5, 1.5, shape).astype(np.float32)
    if special and x.size:
        places = rng.integers(0, x.size, 4)
        x.reshape(-1)[places] = [np.nan, np.inf, -np.inf, -0.0]
    return x


def reduce_axis(x: np.ndarray, kind: int, scale: float) -> np.ndarray:
    """Reduce axis 1 in float64."""
    reduce, neutral = REDUCTIONS[kind]
    if x.shape[1] == 0:
        return np.full(x.shape[:1] + x.shape[2:], neutral * scale)
    return reduce(x.astype(np.float64), axis=1) * scale


def assert_close_on_both_machines(row: Instruction, want: np.ndarray) -> None:
    for results in run_both(row):
        np.testing.assert_allclose(results["y"], want, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [SUM, MAX, MIN, PROD, SQUARES], ids=NAMES.get)
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(
    ("rows", "taps", "channels"),
    [
        (1, 1, 1),
        (3, 2, 16),
        (2, 5, 7),
        (4, 3, 33),
        (2, 2, 64),
        (1, 4, 150),
        (0, 2, 5),
        (2, 0, 20),
        (3, 2, 0),
        (2, 33, 8),
    ],
)
def test_pools_agree_with_numpy(kind: int, special: bool, rows: int, taps: int, channels: int) -> None:
    x, y = floats((rows, taps, channels), special), np.full((rows, channels + 3), 5, np.float32)
    starts, ends = np.arange(rows) * taps * channels, np.arange(rows)[::-1] * (channels + 3)
    places = np.arange(taps) * channels
    want = y.copy()
    with np.errstate(invalid="ignore"):
        want[::-1, :channels] = reduce_axis(x, kind, 0.5)
    row = PoolRow(
        x=x,
        y=y,
        M=rows,
        rows_x=starts,
        rows_y=ends,
        T=taps,
        taps=places,
        C=channels,
        kind=kind,
        scale=0.5,
    )
    assert_close_on_both_machines(row, want)


@pytest.mark.parametrize("kind", [SUM, MAX, MIN, PROD], ids=NAMES.get)
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("stride", [1, 3])
@in_one_test("rows", [0, 1, 5])
@in_one_test("count", [0, 1, 7, 16, 17, 64, 100, 135])
def test_reductions_agree_with_numpy(kind: int, special: bool, stride: int, rows: int, count: int) -> None:
    x, y = floats((rows, count, stride), special), np.full(2 * rows, 5, np.float32)
    starts, ends = np.arange(rows) * count * stride, np.arange(rows) * 2
    want = y.copy()
    with np.errstate(invalid="ignore"):
        want[::2] = reduce_axis(x[:, :, 0], kind, -2.0)
    row = ReduceRow(
        x=x, y=y, M=rows, rows_x=starts, rows_y=ends, R=count, stride=stride, kind=kind, scale=-2.0
    )
    assert_close_on_both_machines(row, want)


@pytest.mark.parametrize("kind", [SUM, MAX, MIN, PROD], ids=NAMES.get)
@pytest.mark.parametrize("special", [False, True])
@in_one_test("stride", [1, 3])
@in_one_test("count", [0, 1, 7, 33])
def test_reductions_in_f64_agree_with_numpy(kind: int, special: bool, stride: int, count: int) -> None:
    x, y = floats((3, count, stride), special).astype(np.float64), np.full(6, 5, np.float64)
    want = y.copy()
    with np.errstate(invalid="ignore"):
        want[::2] = reduce_axis(x[:, :, 0], kind, -2.0)
    row = Reduce64Row(
        x=x,
        y=y,
        M=3,
        rows_x=np.arange(3) * count * stride,
        rows_y=np.arange(3) * 2,
        R=count,
        stride=stride,
        kind=kind,
        scale=-2.0,
    )
    for results in run_both(row):
        np.testing.assert_allclose(results["y"], want, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("kind", [MAX, MIN], ids=NAMES.get)
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize(
    ("row_class", "dtype"), [(ArgReduceRow, np.float32), (ArgReduce64Row, np.float64)], ids=["f32", "f64"]
)
@in_one_test("stride", [1, 3])
@in_one_test("special", [False, True])
@in_one_test("count", [1, 7, 16, 40, 135])
def test_arg_reductions_agree_with_numpy(
    kind: int, last: int, row_class: type[ArgReduceRow], dtype: type, stride: int, special: bool, count: int
) -> None:
    x = np.round(floats((4, count, stride), special) * 4).astype(dtype)
    find = np.argmax if kind == MAX else np.argmin
    values = x[:, :, 0]
    want = count - 1 - find(values[:, ::-1], 1) if last else find(values, 1)
    row = row_class(
        x=x,
        y=np.zeros(4, np.int64),
        M=4,
        rows_x=np.arange(4) * count * stride,
        rows_y=np.arange(4),
        R=count,
        stride=stride,
        kind=kind,
        last=last,
    )
    for results in run_both(row):
        np.testing.assert_array_equal(results["y"], want)


def test_the_index_of_the_largest_is_found_among_infinities() -> None:
    x = np.array([[-np.inf, -np.inf], [-np.inf, np.inf]], np.float32)
    row = ArgReduceRow(
        x=x,
        y=np.zeros(2, np.int64),
        M=2,
        rows_x=np.array([0, 2]),
        rows_y=np.arange(2),
        R=2,
        stride=1,
        kind=MAX,
        last=False,
    )
    for results in run_both(row):
        np.testing.assert_array_equal(results["y"], [0, 1])
