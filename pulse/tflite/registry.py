"""The registry of TFLite operators."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pulse.graph import OutletId

if TYPE_CHECKING:
    from pulse.tflite.node import TfliteNode

Translator: TypeAlias = "Callable[[TfliteNode], OutletId | Sequence[OutletId]]"
T = TypeVar("T", bound=Translator)

TRANSLATORS: dict[str, Translator] = {}
"""Kind of an operator, as the schema spells it -> the function that wires it."""
STATES: dict[str, tuple[int, ...]] = {}
"""Kind -> its inputs that it also writes; their next values are its last outputs."""


def tflite_op(*kinds: str, states: tuple[int, ...] = ()) -> Callable[[T], T]:
    """Register the translator of operators."""

    def register(translator: T) -> T:
        for kind in kinds:
            if kind in TRANSLATORS:
                raise ValueError(f"{kind} is registered twice")
            TRANSLATORS[kind] = translator
            if states:
                STATES[kind] = states
        return translator

    return register
