"""The objects that outlive a module of tests, some 700,000 after collection: a search of them takes half a second."""

import gc
from collections.abc import Callable

from pulse.support.collector import GC_THRESHOLD_OBJECTS

FREEZE_EVERY_MODULES = 8
"""Modules of tests between two freezes, each of which first searches all that they left."""
SELDOM = 1000
"""Collections of the middle generation before one of all objects that are not frozen; by default 10."""


class FrozenHeap:
    """Python's collector skips objects that exist when a module of tests begins; live runs unfreeze it at their end."""

    def __init__(self) -> None:
        self._frozen = False
        self._modules = 0
        self._unfreeze: Callable[[], None] = gc.unfreeze

    def install(self) -> None:
        """Replace ``gc.unfreeze``; to be called before streaming is imported, which keeps a reference to it."""
        gc.unfreeze = self.unfreeze
        gc.set_threshold(GC_THRESHOLD_OBJECTS, gc.get_threshold()[1], SELDOM)

    def freeze(self) -> None:
        if not self._frozen:
            gc.freeze()
            self._frozen = True

    def freeze_all(self) -> None:
        """Freeze, at each eighth call, what earlier modules made and keep: programs and caches, millions of objects."""
        self._modules += 1
        if self._modules % FREEZE_EVERY_MODULES:
            return
        if self._frozen:
            gc.collect(1)  # what they left is young still
        self._frozen = False
        self.freeze()

    def unfreeze(self) -> None:
        gc.collect(1)  # what a run left is young still
        self._unfreeze()
        self._frozen = False


heap = FrozenHeap()
