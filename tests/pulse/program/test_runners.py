"""Every operator case by three runners: the numpy oracle, the kernels as plain Python, the kernels compiled.

The oracle itself is compared with onnxruntime in ``tests/pulse/onnx/test_cases.py``.
"""

from collections import Counter

import numpy as np
import pytest

from pulse.errors import CompileError
from pulse.facts import Array
from tests.pulse.cases.families import FAMILIES
from tests.pulse.program.static_models import run_as_python, run_native, static_cases


def require_close(name: str, outputs: dict[str, Array], expected_outputs: dict[str, Array]) -> None:
    for output, expected in expected_outputs.items():
        assert outputs[output].dtype == expected.dtype, name
        np.testing.assert_allclose(outputs[output], expected, 1e-4, 1e-5, err_msg=name)


@pytest.mark.parametrize("family", FAMILIES)
def test_three_runners_agree(family: str) -> None:
    """f32 and the integer and bool operations around it; other types are refused by name. The reader is another matter,
    so one opset of each case is enough.
    """
    reached: Counter[str] = Counter()
    for case in static_cases(family):
        name, program, feeds = case.name, case.program, case.feeds
        if isinstance(program, CompileError):
            assert 'use backend="numpy"' in str(program), name
            reached["refused"] += 1
            continue
        with np.errstate(all="ignore"):
            expected = case.typed.run(feeds)
        require_close(name, run_native(program, feeds), expected)
        if reached["python"] < 5 or reached["compiled"] % 7 == 0:
            require_close(name, run_as_python(program, feeds), expected)
            reached["python"] += 1
        reached["compiled"] += 1
    assert reached["compiled"] > 5 * reached["refused"], reached
    assert reached["python"] >= min(5, reached["compiled"])
