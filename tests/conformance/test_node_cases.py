"""The node cases of ``onnx.backend.test``: operators that must run do, the others run or say why not."""

import numpy as np
import onnx
import pytest

from tests.conformance.node_cases import as_array, node_cases
from tests.conformance.node_outcomes import NodeOutcome, attempt, failures, outcomes, run_with_few_constants
from tests.conformance.node_skips import MUST, ROUNDED
from tests.failed_cases import FailedCases

CASES_OF = (1, 22)
"""The onnx whose cases the lists are about. Earlier ones lack operators, and have results that were corrected later."""

pytestmark = pytest.mark.skipif(
    tuple(map(int, onnx.__version__.split(".")[:2])) < CASES_OF,
    reason=f"onnx {onnx.__version__} has earlier node cases than 1.22, which the lists are about",
)


def lines_of(listed: list[NodeOutcome]) -> str:
    return "\n".join(map(str, listed))


@pytest.mark.parametrize("operator", MUST)
def test_plain_cases_of_an_operator_pass(operator: str) -> None:
    chosen = [outcome for outcome in outcomes() if outcome.must and outcome.case.operator == operator]
    assert not failures(chosen), lines_of(failures(chosen))
    assert any(outcome.status == "passed" for outcome in chosen)


def test_every_case_runs_or_has_a_reason() -> None:
    assert not failures(outcomes()), lines_of(failures(outcomes()))


def test_no_reason_hides_a_case_that_passes() -> None:
    hidden = [
        outcome.case.name
        for outcome in outcomes()
        if outcome.status == "skipped" and attempt(outcome.case).status == "passed"
    ]
    assert not hidden


def test_rounded_cases_are_within_two_units_in_the_last_place() -> None:
    """A unit is that of the largest entry."""
    failed = FailedCases()
    for case in (case for case in node_cases() if case.name in ROUNDED):
        for inputs, outputs in case.data_sets:
            results, _ = run_with_few_constants(case.model, [as_array(value) for value in inputs])
            for value, expected in zip(case.model.graph.output, map(as_array, outputs), strict=True):
                unit = np.spacing(np.abs(expected).max())
                with failed.collect(case.name):
                    np.testing.assert_allclose(results[value.name], expected, 0, 2 * unit)
    assert not failed, "\n".join(failed)


def test_there_are_many_cases() -> None:
    """The coverage never shrinks: tract 0.23 runs 1,144 of the 1,615 of onnx 1.19."""
    assert len(MUST) == 110
    assert sum(outcome.status == "passed" for outcome in outcomes()) > 1_144
