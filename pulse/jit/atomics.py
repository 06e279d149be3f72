"""Words that threads share without a lock: ordered loads and stores; only in compiled code."""

from pulse.jit.declared import refuse
from pulse.jit.pointer import Pointer


def load(words: Pointer, i: int) -> int:
    """``words[i]``; what its writer wrote before ``store`` is then seen."""
    refuse()


def store(words: Pointer, i: int, value: int) -> None:
    """``words[i] = value``, after all that was written before."""
    refuse()


def replace(words: Pointer, i: int, old: int, new: int) -> bool:
    """``words[i] = new`` where it is ``old``, as one step among all threads; whether it was."""
    refuse()


def advance(words: Pointer, i: int) -> None:
    """``words[i] += 1``; nothing that comes later is done before it, not even a load."""
    refuse()


def fence() -> None:
    """What was stored before is seen by others before anything is loaded after."""
    refuse()
