# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
"""Compiled functions that are no kernels: what Python, or a C library, calls by itself."""

from collections.abc import Callable
from typing import Any

from numba.core import types

from pulse.jit.compiled import CompiledFunction
from pulse.jit.python_call import Form, builtin

OPTIONS = {"error_model": "numpy"}

ENTRIES: dict[str, "Entry | Callback"] = {}
"""All of them, by name: ``machine.run``."""


class Entry(CompiledFunction):
    """A function of ints that Python calls; compiled, or loaded from disk, at its first use.

    result     numba's type of what it gives: none or int64
    arguments  how many ints it takes
    brief      it keeps the GIL: who gives it up waits for it afterwards, 5 ms where another thread computes
    """

    def __init__(
        self, name: str, function: Callable[..., Any], result: Any, arguments: int, brief: bool = False
    ) -> None:
        signature: Any = result(*[types.int64] * arguments)
        super().__init__(name, function, signature, OPTIONS, Form(arguments, result == types.int64, brief))
        self._call: Callable[..., Any] | None = None

    @property
    def call(self) -> Callable[..., Any]:
        """The compiled function."""
        if self._call is None:
            self._call = builtin(self.name, self.address)
        return self._call


class Callback(CompiledFunction):
    """A function that a C library calls."""

    def __init__(self, name: str, function: Callable[..., Any], signature: Any) -> None:
        super().__init__(name, function, signature, OPTIONS)


def entry(
    name: str, arguments: int, result: Any = types.none, brief: bool = False
) -> Callable[[Callable[..., Any]], Entry]:
    """Declare an entry; the function takes that many ints. See ``Entry``."""

    def declare(function: Callable[..., Any]) -> Entry:
        made = Entry(name, function, result, arguments, brief)
        ENTRIES[name] = made
        return made

    return declare


def callback(name: str, signature: Any) -> Callable[[Callable[..., Any]], Callback]:
    """Declare a callback of a numba signature."""

    def declare(function: Callable[..., Any]) -> Callback:
        made = Callback(name, function, signature)
        ENTRIES[name] = made
        return made

    return declare
