"""Any operator, any of its axes made the stream: a right answer or a clean refusal, never anything else."""

import numpy as np
import pytest

from pulse.errors import CompileError
from pulse.models import PulsedModel
from pulse.program.compiler import BACKENDS, compile_model
from pulse.program.program import Program
from tests.invariants.operator_cases import fuzz


def backends(model: PulsedModel, rng: np.random.Generator) -> list[Program]:
    """Ours, as far as they have the kernels."""
    programs: list[Program] = []
    for backend in BACKENDS:
        try:
            programs.append(compile_model(model, backend))
        except CompileError:
            continue
    return programs


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
