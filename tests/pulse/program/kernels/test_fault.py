"""``count_faults`` against numpy, as plain Python and compiled."""

import numpy as np
import pytest

from pulse.facts import I32, I64
from pulse.jit.rows.instruction import number_fields
from pulse.ops.check import Check, conversion_check
from pulse.program.kernels.fault import BETWEEN, NONZERO, WITHIN, CountFaultsRow
from tests.pulse.program.kernels.rows import run_both

CODES = {"float32": 0, "float64": 1, "int64": 2, "int32": 3, "uint8": 4, "int8": 5, "int16": 7}
SHAPE = (6, 2, 3, 5)


def values(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(dtype))
    if dtype.startswith("float"):
        wide = rng.choice(
            np.array([np.nan, np.inf, 1e30, -1e30, 0.5, 2.0**31, -(2.0**31), 7.0, -129, 127.9]), SHAPE
        )
        return wide.astype(dtype)
    return rng.integers(0 if dtype[0] == "u" else -9, 10, SHAPE).astype(dtype)


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("clock", [0, 1, 2])
def test_only_frames_of_the_stream_are_counted(dtype: str, clock: int) -> None:
    """The stream has the frames 3 to 13, six per pulse, one frame late."""
    x = values(dtype)
    if dtype.startswith("float"):
        checks = [conversion_check(np.dtype(np.int8)), conversion_check(I32), conversion_check(I64)]
    else:
        checks = [Check(0, 0, 6), Check(0, -3, 3), Check(0, nonzero=True)]
    first = 6 * clock - 1
    valid = x[max(3 - first, 0) : max(13 - first, 0)]
    for check in checks:
        if dtype.startswith("float"):
            mode, (above, below) = BETWEEN, check.bounds()
            low = high = 0
        else:
            mode, above, below = NONZERO if check.nonzero else WITHIN, 0.0, 0.0
            low, high = check.low, check.high
        want = int(check.find_failing(valid).sum())
        row = CountFaultsRow(
            x=x,
            own=np.array([40]),
            total=np.array([2]),
            clock=np.array([clock]),
            gate=np.array([0]),
            begin=np.array([3]),
            end=np.array([13]),
            P=6,
            shift=-1,
            F=6,
            step=30,
            **number_fields("s", [2, 3, 5]),
            **number_fields("t", [15, 5, 1]),
            dtype=CODES[dtype],
            mode=mode,
            above=above,
            below=below,
            low=low,
            high=high,
        )
        for arrays in run_both(row):
            assert [int(arrays[name][0]) for name in ("own", "total")] == [40 + want, 2 + want]


@pytest.mark.parametrize(("clock", "want"), [(4, 0), (5, 2)])
def test_faults_count_from_the_pulse_of_the_gate_on(clock: int, want: int) -> None:
    """Arrays may have strides, and bytes may be negative."""
    x = np.array([-1, 5, -2, 5, 3, 5], np.int8)
    row = CountFaultsRow(
        x=x,
        own=np.array([0]),
        total=np.array([0]),
        clock=np.array([clock]),
        gate=np.array([5]),
        begin=np.array([0]),
        end=np.array([1]),
        P=0,
        shift=0,
        F=1,
        step=0,
        **number_fields("s", [1, 1, 3]),
        **number_fields("t", [0, 0, 2]),
        dtype=CODES["int8"],
        mode=WITHIN,
        above=0.0,
        below=0.0,
        low=0,
        high=4,
    )
    for arrays in run_both(row):
        assert arrays["own"][0] == want == arrays["total"][0]
