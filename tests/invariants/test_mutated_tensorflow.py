"""A broken TensorFlow file loads as a model or raises an error with a reason."""

from pathlib import Path

import pytest

from tests.invariants.mutation_runs import assert_harmless
from tests.invariants.tensorflow_mutations import write_folders


def test_graphs_changed_at_random_are_harmless() -> None:
    stages = assert_harmless("tensorflow", 0, 300)
    assert sum(stages.values()) == 300
    assert min(stages[stage] for stage in ("load", "analyse", "pulsify", "pulsed")) > 3


def test_saved_models_changed_at_random_are_harmless(tmp_path: Path) -> None:
    write_folders(tmp_path, range(60))
    stages = assert_harmless(tmp_path)
    assert sum(stages.values()) == 60
    assert stages["load"] > 5
    assert len(stages) > 1


@pytest.mark.slow
def test_many_graphs_changed_at_random_are_harmless() -> None:
    assert sum(assert_harmless("tensorflow", 300, 2000).values()) == 1700


@pytest.mark.slow
def test_many_saved_models_changed_at_random_are_harmless(tmp_path: Path) -> None:
    write_folders(tmp_path, range(60, 460))
    assert sum(assert_harmless(tmp_path).values()) == 400
