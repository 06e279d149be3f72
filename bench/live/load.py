"""Other work of a Python program while sound runs."""

import gc
import random
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

KEPT_OBJECTS = 100_000
"""Objects that each collection traverses."""
NEW_OBJECTS = 20_000
"""Objects of each round, all of them garbage in cycles."""
SORTED_NUMBERS = 50_000
"""Numbers; to sort them is one call in C that never releases the GIL."""
PAUSE_S = 0.05
"""The seconds between two rounds of work that comes in bursts."""


def compute_and_collect() -> AbstractContextManager[None]:
    """Run a thread that computes in pure Python and one that allocates and collects garbage, within this context."""
    return _threads(_compute, _allocate)


def hold_the_lock() -> AbstractContextManager[None]:
    """Run a thread that sorts at intervals, holding the GIL, within this context."""
    return _threads(_sort)


@contextmanager
def _threads(*works: Callable[[threading.Event], None]) -> Generator[None]:
    ended = threading.Event()
    threads = [threading.Thread(target=work, args=(ended,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _compute(ended: threading.Event) -> None:
    number = 1
    while not ended.is_set():
        for _ in range(10_000):
            number = number * 1_103_515_245 + 12_345 & 0x7FFF_FFFF


def _allocate(ended: threading.Event) -> None:
    blocks = [{"number": number} for number in range(KEPT_OBJECTS)]
    while not ended.wait(PAUSE_S):
        for _ in range(NEW_OBJECTS):
            cycle: list[object] = [blocks]
            cycle.append(cycle)
        gc.collect()


def _sort(ended: threading.Event) -> None:
    numbers = [random.random() for _ in range(SORTED_NUMBERS)]
    while not ended.wait(PAUSE_S):
        sorted(numbers)
