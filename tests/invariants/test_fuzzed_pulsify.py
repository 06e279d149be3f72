"""Any operator, any of its axes made the stream: a right answer or a clean refusal, never anything else."""

import pytest

from tests.invariants.backends import backends
from tests.invariants.operator_cases import fuzz


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_fuzzed_models_agree_or_are_refused() -> None:
    """Two hundred models; some are equal and some are refused."""
    outcomes = fuzz(range(200), backends)
    assert outcomes["equal"] >= 50, outcomes
    assert outcomes["refused"] >= 10, outcomes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_fuzzed_models_agree_or_are_refused() -> None:
    """Ten thousand models, on all backends."""
    outcomes = fuzz(range(1_000, 11_000), backends)
    print(dict(outcomes))
    assert sum(outcomes.values()) == 10_000
