"""Words that threads share without a lock: ordered loads and stores; only in compiled code.

A word is ``words[i]`` of a pointer or of ``numbers``, or a field of a struct by its name.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.declared import refuse
from pulse.jit.language.structs import Struct
from pulse.jit.rows.pointer import Pointer

WordArray: TypeAlias = Pointer | NDArray[np.int64] | Struct
WordIndex: TypeAlias = int | str
"""The index of a word, or the name of a field."""


def load(words: WordArray, i: WordIndex) -> int:
    """Load a word; after that, everything that its writer wrote before ``store`` is visible."""
    refuse()


def store(words: WordArray, i: WordIndex, value: int) -> None:
    """Store a word, after all earlier writes."""
    refuse()


def compare_exchange(words: WordArray, i: WordIndex, old: int, new: int) -> bool:
    """Set the word to ``new`` if it is ``old``, atomically; return whether it was."""
    refuse()


def increment(words: WordArray, i: WordIndex) -> None:
    """Add 1 to the word; no later load or store is moved before it."""
    refuse()


def fence() -> None:
    """Make earlier stores visible to other threads before any later load."""
    refuse()
