"""A broken archive of NNEF loads as a model or raises an error with a reason: no crash, no hang, no other file read."""

import pytest

from tests.invariants.mutation_runs import assert_harmless


def test_archives_changed_at_random_are_harmless() -> None:
    stages = assert_harmless("nnef", 0, 400)
    assert sum(stages.values()) == 400
    assert min(stages[stage] for stage in ("load", "pulsed")) > 5, stages
    assert stages["pulsify"], stages


@pytest.mark.slow
def test_many_archives_changed_at_random_are_harmless() -> None:
    assert sum(assert_harmless("nnef", 400, 4000).values()) == 3600
