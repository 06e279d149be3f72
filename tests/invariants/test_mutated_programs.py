"""A broken program file is refused with an error, or runs inside of its memories: no crash, no hang."""

from collections import Counter

import pytest

from tests.invariants.mutation_runs import assert_harmless

FILES = 100


def assert_reached(stages: Counter[str], files: int) -> None:
    """Most are refused when they are loaded; some of those that are not run to their end."""
    assert stages.total() == files
    assert stages["load"] > files / 4, stages
    assert stages["ran"] > files / 20, stages


def test_mutated_programs_are_harmless() -> None:
    assert_reached(assert_harmless("program", 0, FILES), FILES)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_mutated_programs_are_harmless(part: int) -> None:
    stages = assert_harmless("program", 1000 * part, 1000 * part + 1000)
    print(f"{stages.total()} program files: {stages['load']} refused, {stages['ran']} ran")
    assert_reached(stages, 1000)
