"""Words that threads share without a lock: ordered loads and stores; only in compiled code.

A word is ``words[i]`` of a pointer or of ``numbers``, or a field of a struct by its name.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pulse.jit.declared import refuse
from pulse.jit.pointer import Pointer
from pulse.jit.structs import Struct

Words: TypeAlias = Pointer | NDArray[np.int64] | Struct
Which: TypeAlias = int | str
"""The index of a word, or the name of a field."""


def load(words: Words, i: Which) -> int:
    """The word; what its writer wrote before ``store`` is then seen."""
    refuse()


def store(words: Words, i: Which, value: int) -> None:
    """Set the word, after all that was written before."""
    refuse()


def replace(words: Words, i: Which, old: int, new: int) -> bool:
    """Set the word if it is ``old``, as one step among all threads; whether it was."""
    refuse()


def advance(words: Words, i: Which) -> None:
    """Add 1 to the word; nothing that comes later is done before it, not even a load."""
    refuse()


def fence() -> None:
    """What was stored before is seen by others before anything is loaded after."""
    refuse()
