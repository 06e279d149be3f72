"""Registries: functions by what they are for, such as an operator or a class of ops."""

from collections.abc import Callable, Iterable
from typing import TypeVar

K = TypeVar("K")
F = TypeVar("F")


class Registry(dict[K, F]):
    """Key -> its function; each key has one."""

    def enter(self, keys: Iterable[K], function: F) -> None:
        """Add a function for keys. Raises ValueError: a key has one already."""
        for key in keys:
            if key in self:
                raise ValueError(f"{getattr(key, '__name__', key)} is registered twice")
            self[key] = function

    def register(self, *keys: K) -> Callable[[F], F]:
        """Register a function for keys: a decorator. Raises ValueError: a key has one already."""

        def register(function: F) -> F:
            self.enter(keys, function)
            return function

        return register
