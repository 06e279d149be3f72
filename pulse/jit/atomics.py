"""Words that threads share without a lock: ordered loads and stores; only in compiled code."""

from pulse.jit.declared import compiled_only
from pulse.jit.pointer import Pointer


@compiled_only
def load(words: Pointer, i: int) -> int:
    """``words[i]``; what its writer wrote before ``store`` is then seen."""


@compiled_only
def store(words: Pointer, i: int, value: int) -> None:
    """``words[i] = value``, after all that was written before."""


@compiled_only
def replace(words: Pointer, i: int, old: int, new: int) -> bool:
    """``words[i] = new`` where it is ``old``, as one step among all threads; whether it was."""


@compiled_only
def advance(words: Pointer, i: int) -> None:
    """``words[i] += 1``; nothing that comes later is done before it, not even a load."""


@compiled_only
def fence() -> None:
    """What was stored before is seen by others before anything is loaded after."""
