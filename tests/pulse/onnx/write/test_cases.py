"""Operator cases without a stream: what is written gives in onnxruntime what the oracle gives."""

from collections import Counter

import pytest

import pulse
from pulse.errors import WriteError
from pulse.onnx.write.model import to_onnx
from pulse.runtimes.onnx_runtimes import open_runtime
from tests.agreement import Expected
from tests.failed_cases import FailedCases
from tests.pulse.cases.families import all_cases
from tests.pulse.program.static_models import fixed_specs, static_model


def count_outcomes(step: int) -> Counter[str]:
    """The outcomes of every ``step``-th case of all families. Raises AssertionError with all cases that differ."""
    counts: Counter[str] = Counter()
    failed = FailedCases()
    fixed_cases = [case for case in all_cases() if case[0].endswith("-fixed")]
    for name, source, feeds in fixed_cases[::step]:
        typed = pulse.load(source, inputs=fixed_specs(feeds)).model.analyse()
        expected = Expected(typed, feeds)
        try:
            proto = to_onnx(static_model(typed), 18)
        except WriteError as error:
            assert "does not allow it" in str(error) or "cannot be written" in str(error), name
            counts["refused"] += 1
            continue
        opened = open_runtime(proto)
        inputs = {value.name for value in proto.graph.input}
        outputs = opened.run({key: value for key, value in feeds.items() if key in inputs})
        with failed.collect(f"{name}, {opened.name}"):
            expected.assert_runtime_agrees(outputs, name)
        counts[opened.name.split()[0]] += 1
    assert not failed, "\n".join(failed)
    return counts


def test_some_cases_run_in_onnxruntime_as_here() -> None:
    """Every ninth case; at most 5 percent are refused."""
    counts = count_outcomes(9)
    assert counts["onnxruntime"] >= 100
    assert counts["refused"] <= counts["onnxruntime"] // 20, counts


@pytest.mark.slow
def test_all_cases_run_in_onnxruntime_as_here() -> None:
    counts = count_outcomes(1)
    print(dict(counts))
    assert counts["onnxruntime"] >= 1_000
