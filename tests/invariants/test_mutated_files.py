"""A broken file loads as a model or raises an error with a reason: no crash, no hang, no other file read."""

from pathlib import Path

import pytest

from tests.invariants import tflite_mutations
from tests.invariants.hostile_models import write_all
from tests.invariants.mutation_runs import assert_harmless
from tests.shared import shared_path

FILES, TFLITE_FILES = 200, 300


def test_files_changed_at_random_are_harmless() -> None:
    stages = assert_harmless(0, FILES)
    assert sum(stages.values()) == FILES
    assert min(stages[stage] for stage in ("load", "analyse", "pulsify", "pulsed")) > 5


def test_hostile_files_are_harmless(tmp_path: Path) -> None:
    """Each file may take less than the others, as some of them take all that they may."""
    write_all(tmp_path / "models")
    stages = assert_harmless(tmp_path / "models", "--small")
    assert sum(stages.values()) == len(list((tmp_path / "models").glob("*.onnx")))
    assert min(stages[stage] for stage in ("load", "analyse", "pulsify", "pulsed")) > 5


def test_tflite_files_changed_at_random_are_harmless(tmp_path: Path) -> None:
    tflite_mutations.write(tmp_path / "models", 0, TFLITE_FILES)
    stages = assert_harmless(tmp_path / "models")
    assert sum(stages.values()) == TFLITE_FILES
    assert min(stages[stage] for stage in ("load", "analyse", "pulsify", "pulsed")) > 5


@pytest.mark.slow
def test_hostile_files_are_harmless_within_the_usual_budget(tmp_path: Path) -> None:
    write_all(tmp_path / "models")
    assert_harmless(tmp_path / "models")


@pytest.mark.slow
@pytest.mark.parametrize("start", range(FILES, FILES + 10_000, 1000))
def test_many_files_changed_at_random_are_harmless(start: int) -> None:
    assert sum(assert_harmless(start, start + 1000).values()) == 1000


@pytest.mark.slow
@pytest.mark.parametrize("start", range(TFLITE_FILES, TFLITE_FILES + 2000, 500))
def test_many_tflite_files_changed_at_random_are_harmless(tmp_path: Path, start: int) -> None:
    tflite_mutations.write(tmp_path / "models", start, start + 500)
    assert sum(assert_harmless(tmp_path / "models").values()) == 500


@pytest.mark.slow
def test_real_models_changed_at_random_are_harmless() -> None:
    assert sum(assert_harmless(0, 200, shared_path("models")).values()) == 200
