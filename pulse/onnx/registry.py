"""Which ONNX operators are covered, and by which function."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pulse.graph import OutletId

if TYPE_CHECKING:
    from pulse.onnx.context import NodeContext

Translator: TypeAlias = "Callable[[NodeContext], OutletId | Sequence[OutletId]]"

TRANSLATORS: dict[str, Translator] = {}
"""Operator of the default domain -> the function that wires it."""


def onnx_op(*types: str) -> Callable[[Translator], Translator]:
    """Register a function as the translator of operators."""

    def register(translator: Translator) -> Translator:
        for name in types:
            if name in TRANSLATORS:
                raise ValueError(f"{name} is registered twice")
            TRANSLATORS[name] = translator
        return translator

    return register
