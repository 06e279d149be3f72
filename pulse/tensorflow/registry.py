"""The registry of TensorFlow operators."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pulse.graph import OutletId

if TYPE_CHECKING:
    from pulse.tensorflow.context import TensorflowNode

Translator: TypeAlias = "Callable[[TensorflowNode], OutletId | Sequence[OutletId]]"
T = TypeVar("T", bound=Translator)

DOMAIN = "tensorflow"
"""The domain of TensorFlow's operators for ``pulse.operator``."""

TRANSLATORS: dict[str, Translator] = {}
"""Operator -> the function of this package that wires it."""


def own_name(kind: str) -> str:
    """The name under which ``pulse.operator`` knows an operator of TensorFlow."""
    return f"{DOMAIN}::{kind}"


def tensorflow_op(*names: str) -> Callable[[T], T]:
    """Register a function of this package as the translator of operators."""

    def register(translator: T) -> T:
        for name in names:
            if name in TRANSLATORS:
                raise ValueError(f"{name} is registered twice")
            TRANSLATORS[name] = translator
        return translator

    return register
