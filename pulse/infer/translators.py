"""The translators of a file format: the functions that wire its operators."""

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from pulse.graph import OutletId
from pulse.support.registry import Registry

N = TypeVar("N")
"""A node as its translator sees it."""
Outlets: TypeAlias = OutletId | Sequence[OutletId]
R = TypeVar("R", bound=Outlets)


class Translators(Registry[str, Callable[[N], Outlets]]):
    """Operator -> the function that wires it and returns its outputs; each operator has one."""

    def register(self, *keys: str) -> Callable[[Callable[[N], R]], Callable[[N], R]]:
        """Register a function as the translator of operators. Raises ValueError: an operator has one already."""

        def register(translator: Callable[[N], R]) -> Callable[[N], R]:
            self.enter(keys, translator)
            return translator

        return register
