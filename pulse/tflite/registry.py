"""The registry of TFLite operators."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from pulse.infer.translators import Outlets, Translators

if TYPE_CHECKING:
    from pulse.tflite.node import TfliteNode

R = TypeVar("R", bound=Outlets)

TRANSLATORS: "Translators[TfliteNode]" = Translators()
"""Operator, as the schema spells it -> the function that wires it.

There are no rules of inference beside them: a file states type and shape of each input, so nothing is unknown.
"""
STATES: dict[str, tuple[int, ...]] = {}
"""Operator -> its inputs that it also writes; their next values are its last outputs."""


def tflite_op(
    *op_types: str, states: tuple[int, ...] = (), complex_numbers: bool = False
) -> "Callable[[Callable[[TfliteNode], R]], Callable[[TfliteNode], R]]":
    """Register the translator of operators."""
    if states:
        STATES.update(dict.fromkeys(op_types, states))
    return TRANSLATORS.register(*op_types, complex_numbers=complex_numbers)
