"""``look_up_codes`` against numpy, as plain Python and compiled."""

import numpy as np
import pytest

from pulse.ops.quantize import CodeTable
from pulse.program.kernels.quantize import LookUpCodesRow
from tests.noise import next_noise
from tests.pulse.program.kernels.rows import run_both


@pytest.mark.parametrize(("first", "size"), [(-128, 256), (-3, 7), (5, 1)])
def test_codes_outside_of_the_table_get_its_first_or_last_entry(first: int, size: int) -> None:
    rng = np.random.default_rng(size)
    x = np.concatenate([np.arange(first - 3, first + size + 3), [np.nan, np.inf, -np.inf]]).astype(np.float32)
    table = next_noise(rng, size)
    (expected,) = CodeTable(first).eval([x[:-3], table], {})
    y = np.full(x.shape, 7, np.float32)
    for arrays in run_both(LookUpCodesRow(x=x, table=table, y=y, count=len(x), first=first, size=size)):
        np.testing.assert_array_equal(arrays["y"][:-3], expected)
        np.testing.assert_array_equal(arrays["y"][-3:], table[[0, -1, 0]])
