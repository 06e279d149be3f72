"""Registries: functions by what they are for, such as an operator or a class of ops."""

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
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


def import_siblings(module: str) -> None:
    """Import every module beside this one, by name, for what it registers; ``families`` of a package calls this.

    Packages beside it are imported too, but for those with a module ``families`` of their own.
    """
    package = module.rpartition(".")[0]
    [folder] = import_module(package).__path__
    for path in sorted(Path(folder).rglob("*.py")):
        *inner, name = path.relative_to(folder).with_suffix("").parts
        if name not in ("__init__", "families") and not (inner and path.with_name("families.py").exists()):
            import_module(".".join((package, *inner, name)))
