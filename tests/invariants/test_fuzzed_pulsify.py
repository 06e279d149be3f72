"""Any operator, any of its axes made the stream: a right answer or a clean refusal, never anything else."""

import pytest

from tests.invariants.backends import backends
from tests.invariants.operator_cases import fuzz


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_some_fuzzed_models() -> None:
    """Two hundred; every ending is reached."""
    found = fuzz(range(200), backends)
    assert found["equal"] >= 50, found
    assert found["refused"] >= 10, found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_fuzzed_models() -> None:
    """Ten thousand."""
    found = fuzz(range(1_000, 11_000), backends)
    print(dict(found))
    assert sum(found.values()) == 10_000
