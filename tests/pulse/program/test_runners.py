"""Every operator case by three runners: the numpy oracle, the kernels as plain Python, the kernels compiled.

The oracle itself is compared with onnxruntime in ``tests/pulse/onnx/test_cases.py``.
"""

from collections import Counter

import numpy as np
import pytest

from pulse.errors import CompileError
from tests.agreement import assert_outputs_close
from tests.failed_cases import FailedCases
from tests.pulse.cases.families import FAMILIES
from tests.pulse.program.static_models import run_as_python, run_native, static_cases


@pytest.mark.parametrize("family", FAMILIES)
def test_three_runners_agree(family: str) -> None:
    """Types without kernels are refused by name. Opsets differ only in the reader, so each case has one."""
    reached: Counter[str] = Counter()
    failed = FailedCases()
    for case in static_cases(family):
        name, program, feeds = case.name, case.program, case.feeds
        if isinstance(program, CompileError):
            assert 'use backend="numpy"' in str(program), name
            reached["refused"] += 1
            continue
        with np.errstate(all="ignore"):
            expected = case.typed.run(feeds)
        with failed.collect(f"{name}, compiled"):
            assert_outputs_close(run_native(program, feeds), expected, 1e-4, 1e-5)
        with failed.collect(f"{name}, plain Python"):
            assert_outputs_close(run_as_python(program, feeds), expected, 1e-4, 1e-5)
        reached["run"] += 1
    assert not failed, "\n".join(failed)
    assert reached["run"] > 5 * reached["refused"], reached
