"""The translators of a file format: the functions that wire its operators."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from pulse.graph import OutletId

N = TypeVar("N")
"""A node as its translator sees it."""
Outlets: TypeAlias = OutletId | Sequence[OutletId]
R = TypeVar("R", bound=Outlets)


class Translators(dict[str, Callable[[N], Outlets]], Generic[N]):
    """Operator -> the function that wires it and gives its outputs; each operator has one."""

    def register(self, *names: str) -> Callable[[Callable[[N], R]], Callable[[N], R]]:
        """Register a function as the translator of operators. Raises ValueError: an operator has one already."""

        def register(translator: Callable[[N], R]) -> Callable[[N], R]:
            for name in names:
                if name in self:
                    raise ValueError(f"{name} is registered twice")
                self[name] = translator
            return translator

        return register
