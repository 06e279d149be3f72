"""The collector of cycles while many objects are made that stay."""

import gc
from collections.abc import Generator

import pytest

from pulse.support.collector import GC_THRESHOLD_OBJECTS, fewer_collections


@pytest.fixture(autouse=True)
def usual_collector() -> Generator[None]:
    thresholds = gc.get_threshold()
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def is_in(generation: int, searched: object) -> bool:
    return any(instance is searched for instance in gc.get_objects(generation))


def test_new_objects_are_old_afterwards() -> None:
    """They are old at the end of the outermost block, and nothing is kept out of the collector."""
    with fewer_collections():
        with fewer_collections():
            objects = [[number] for number in range(1000)]
            assert gc.get_threshold() == (GC_THRESHOLD_OBJECTS, 10, 10)
        assert is_in(0, objects[0])
    assert is_in(2, objects[0])
    assert not is_in(0, objects[0])
    assert gc.get_threshold() == (700, 10, 10)
    assert gc.get_freeze_count() == 0


def test_frozen_objects_stay_frozen() -> None:
    gc.freeze()
    count = gc.get_freeze_count()
    with fewer_collections():
        objects = [[number] for number in range(1000)]
    assert gc.get_freeze_count() >= count - 100
    assert not is_in(2, objects[0])


def test_a_collector_that_is_off_stays_off() -> None:
    gc.set_threshold(0, 10, 10)
    with fewer_collections():
        assert gc.get_threshold() == (0, 10, 10)
    assert gc.get_threshold() == (0, 10, 10)
