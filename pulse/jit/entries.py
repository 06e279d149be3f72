# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
"""Compiled functions that Python or a C library calls directly."""

from collections.abc import Callable
from typing import Any

from pulse.jit.compiled import CompiledFunction
from pulse.jit.language.declared import CSignature
from pulse.jit.python_call import CallResult, PythonCall, builtin

OPTIONS = {"error_model": "numpy"}

ENTRIES: dict[str, "Entry | Callback"] = {}
"""All of them by name, such as ``machine.run``."""


class _WithCSignature(CompiledFunction):
    c_signature: CSignature

    @property
    def signature(self) -> Any:
        from pulse.jit.codegen.foreign import numba_signature

        return numba_signature(self.c_signature)

    @property
    def signature_text(self) -> str:
        return repr(self.c_signature)


class Entry(_WithCSignature):
    """A function of ints that Python calls; compiled, or loaded from disk, at its first use.

    arguments  the number of its ints
    returns    the kind of its result; see ``PythonCall``
    keeps_gil  do not release the GIL: acquiring it again can take 5 ms if another thread computes
    objects    the positions of arguments that may be any object; the function gets the object's address
    bound      each function from ``bind`` has its own first argument
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: int,
        returns: CallResult = None,
        keeps_gil: bool = False,
        objects: tuple[int, ...] = (),
        bound: bool = False,
    ) -> None:
        super().__init__(name, function, OPTIONS, PythonCall(arguments, returns, keeps_gil, objects, bound))
        self.c_signature = CSignature("i64" if returns else None, ("i64",) * arguments)
        self._call: Callable[..., Any] | None = None

    @property
    def call(self) -> Callable[..., Any]:
        """The compiled function."""
        if self._call is None:
            self._call = builtin(self.name, self.address)
        return self._call

    def bind(self, first: int, kept: object) -> Callable[..., Any]:
        """Return the function of a bound entry with this first argument; it keeps an object alive."""
        return builtin(self.name, self.address, first, kept)


class Callback(_WithCSignature):
    """A function that a C library calls."""

    def __init__(self, name: str, function: Callable[..., Any], signature: CSignature) -> None:
        super().__init__(name, function, OPTIONS)
        self.c_signature = signature


def entry(
    name: str,
    arguments: int,
    returns: CallResult = None,
    keeps_gil: bool = False,
    objects: tuple[int, ...] = (),
    bound: bool = False,
) -> Callable[[Callable[..., Any]], Entry]:
    """Declare an entry of this many int arguments. See ``Entry``."""

    def declare(function: Callable[..., Any]) -> Entry:
        declared = Entry(name, function, arguments, returns, keeps_gil, objects, bound)
        ENTRIES[name] = declared
        return declared

    return declare


def callback(name: str, signature: CSignature) -> Callable[[Callable[..., Any]], Callback]:
    """Declare a callback with a ``c_signature``."""

    def declare(function: Callable[..., Any]) -> Callback:
        declared = Callback(name, function, signature)
        ENTRIES[name] = declared
        return declared

    return declare
