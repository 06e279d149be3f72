"""Every case runs offline as onnxruntime runs it."""

import numpy as np
import onnx
import pytest

from pulse.loading.onnx_files import read_onnx
from tests.failed_cases import FailedCases
from tests.pulse.cases.build import Case
from tests.pulse.cases.families import FAMILIES, all_cases, cases
from tests.pulse.onnx.reference import has_reference, reference


def assert_runs_as_in_onnxruntime(case: Case) -> None:
    _, model, feeds = case
    typed = read_onnx(model).analyse()
    typed.graph.check()
    outputs = typed.run(feeds)
    env = typed.bind(feeds)
    assert list(outputs) == [value.name for value in model.graph.output]
    for (name, result), expected in zip(outputs.items(), reference(model, feeds), strict=True):
        fact = typed.outputs[name]
        assert result.dtype == expected.dtype == fact.dtype
        assert result.shape == tuple(dim.eval(env) for dim in fact.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_operator_cases_run_as_in_onnxruntime(family: str) -> None:
    failed = FailedCases()
    runnable = [case for case in cases(family) if has_reference(case[1])]
    for case in runnable:
        with failed.collect(case[0]):
            assert_runs_as_in_onnxruntime(case)
    assert not failed, "\n".join(failed)
    if len(runnable) < len(cases(family)):
        others = len(cases(family)) - len(runnable)
        pytest.skip(
            f"onnx {onnx.__version__} has no reference for the opset of {others} other cases; install a newer one"
        )


def test_no_two_cases_share_a_name() -> None:
    names = [name for name, _, _ in all_cases()]
    assert len(names) == len(set(names))
