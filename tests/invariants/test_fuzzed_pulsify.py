"""Any operator, any of its axes made the stream: a right answer or a clean refusal, never anything else."""

import pytest

from tests.invariants.backends import backends
from tests.invariants.operator_cases import fuzz


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_some_fuzzed_models() -> None:
    """Two hundred; every ending is reached."""
    outcomes = fuzz(range(200), backends)
    assert outcomes["equal"] >= 50, outcomes
    assert outcomes["refused"] >= 10, outcomes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_fuzzed_models() -> None:
    """Ten thousand."""
    outcomes = fuzz(range(1_000, 11_000), backends)
    print(dict(outcomes))
    assert sum(outcomes.values()) == 10_000
