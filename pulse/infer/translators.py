"""The translators of a file format: the functions that wire its operators."""

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from pulse.graph import OutletId
from pulse.support.registry import Registry

N = TypeVar("N")
"""A node as its translator sees it."""
Outlets: TypeAlias = OutletId | Sequence[OutletId]
R = TypeVar("R", bound=Outlets)


def wire_node(translator: Callable[[N], Outlets], node: N) -> list[OutletId]:
    """Wire a node with its translator, and return its outputs."""
    outlets = translator(node)
    return [outlets] if isinstance(outlets, OutletId) else list(outlets)


class Translators(Registry[str, Callable[[N], Outlets]]):
    """Operator -> the function that wires it and returns its outputs; each operator has one.

    complex_operators  those that support complex numbers, a last axis of two; readers refuse them at all others
    """

    def __init__(self) -> None:
        super().__init__()
        self.complex_operators: set[str] = set()

    def register(
        self, *keys: str, complex_numbers: bool = False
    ) -> Callable[[Callable[[N], R]], Callable[[N], R]]:
        """Register a function as the translator of operators. Raises ValueError: an operator has one already."""

        def register(translator: Callable[[N], R]) -> Callable[[N], R]:
            self.enter(keys, translator)
            if complex_numbers:
                self.complex_operators.update(keys)
            return translator

        return register
