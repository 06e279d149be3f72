"""``count_faults`` against numpy, as plain Python and compiled."""

import numpy as np
import pytest

from pulse.ops.check import Check, conversion_check
from pulse.program.kernels.fault import BETWEEN, NONZERO, WITHIN, count_faults
from tests.pulse.program.kernels.positional_rows import At, run_both

CODES = {"float32": 0, "float64": 1, "int64": 2, "int32": 3, "uint8": 4, "int8": 5, "int16": 7}
SHAPE = (6, 2, 3, 5)
I64, I32 = np.dtype(np.int64), np.dtype(np.int32)


def values(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(dtype))
    if dtype.startswith("float"):
        wide = rng.choice(np.array([np.nan, np.inf, 1e30, -1e30, 0.5, -0.5, 2.0**31, -(2.0**31), 7.0]), SHAPE)
        return wide.astype(dtype)
    return rng.integers(0 if dtype[0] == "u" else -9, 10, SHAPE).astype(dtype)


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("clock", [0, 1, 2])
def test_frames_of_the_stream(dtype: str, clock: int) -> None:
    """Frames 3 to 13, six in a pulse, one late."""
    x = values(dtype)
    if dtype.startswith("float"):
        checks = [conversion_check(0, I32), conversion_check(0, I64)]
    else:
        checks = [Check(0, 0, 6), Check(0, -3, 3), Check(0, nonzero=True)]
    first = 6 * clock - 1
    valid = x[max(3 - first, 0) : max(13 - first, 0)]
    for check in checks:
        if dtype.startswith("float"):
            limits = BETWEEN, *check.bounds(), 0, 0
        else:
            limits = NONZERO if check.nonzero else WITHIN, 0.0, 0.0, check.low, check.high
        words = [np.array([word], np.int64) for word in (40, 2, clock, 0, 3, 13)]
        want = int(check.find_failing(valid).sum())
        row = (6, -1, 6, 30, 2, 3, 5, 15, 5, 1, CODES[dtype], *limits)
        for arrays in run_both(count_faults, [x, *words], *map(At, range(7)), *row):
            assert [int(array[0]) for array in arrays[1:3]] == [40 + want, 2 + want]


def test_nothing_before_the_gate() -> None:
    """And with strides, bytes below 0, every second."""
    x = np.array([-1, 5, -2, 5, 3, 5], np.int8)
    for clock, want in ((4, 0), (5, 2)):
        words = [np.array([word], np.int64) for word in (0, 0, clock, 5, 0, 1)]
        row = (0, 0, 1, 0, 1, 1, 3, 0, 0, 2, CODES["int8"], WITHIN, 0.0, 0.0, 0, 4)
        for arrays in run_both(count_faults, [x, *words], *map(At, range(7)), *row):
            assert arrays[1][0] == want == arrays[2][0]
