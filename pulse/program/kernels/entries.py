# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
"""Compiled functions that are no kernels: what Python, or a C library, calls by itself."""

import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
from numba.core import types
from numba.core.ccallback import CFunc

from pulse.program.kernels.cache import FunctionCache

Function = TypeVar("Function", bound=Callable[..., Any])

_compiling = threading.RLock()

ENTRIES: dict[str, "Entry | Callback"] = {}
"""All of them, by name: ``machine.run``."""


class Entry:
    """A function of ints that Python calls; compiled, or loaded from disk, at its first use.

    result     numba's type of what it gives
    arguments  how many ints it takes
    brief      it keeps the GIL: who gives it up waits for it afterwards, 5 ms where another thread computes
    """

    def __init__(
        self, name: str, function: Callable[..., Any], result: Any, arguments: int, brief: bool = False
    ) -> None:
        self.name = name
        self.function = function
        self.brief = brief
        self.signature: Any = result(*[types.int64] * arguments)
        self._cache = FunctionCache(name, cast(FunctionType, function))
        self._call: Callable[..., Any] | None = None

    @property
    def kept(self) -> bool:
        """Whether the compiled form is on the disk."""
        return self._cache.kept()

    @property
    def call(self) -> Callable[..., Any]:
        """The compiled function; skips numba's dispatch on types."""
        return self._call or self._compile()

    def _compile(self) -> Callable[..., Any]:
        with _compiling:
            if self._call is None:
                dispatcher: Any = numba.njit(nogil=not self.brief, error_model="numpy")(self.function)
                dispatcher._cache = self._cache
                dispatcher.compile(self.signature)
                self._call = cast("Callable[..., Any]", dispatcher.overloads[self.signature.args].entry_point)
            return self._call

    def prepare(self) -> None:
        """Compile it, or load it."""
        _ = self.call


class Callback:
    """A function that a C library calls; it must not raise, for nothing is there to catch it."""

    def __init__(self, name: str, function: Callable[..., Any], signature: Any) -> None:
        self.name = name
        self.function = function
        self.signature = signature
        self._cache = FunctionCache(name, cast(FunctionType, function))
        self._callback: Any = None

    @property
    def kept(self) -> bool:
        """Whether the compiled form is on the disk."""
        return self._cache.kept()

    @property
    def _compiled(self) -> Any:
        if self._callback is None:
            with _compiling:
                if self._callback is None:
                    self._callback = self._compile()
        return self._callback

    def _compile(self) -> Any:
        args: Any = (self.signature.args, self.signature.return_type)
        options = {"nopython": True, "error_model": "numpy"}
        compiled: Any = CFunc(self.function, args, locals={}, options=options)
        compiled._cache = self._cache
        compiled.compile()
        return compiled

    @property
    def address(self) -> int:
        """Where the C function is; this process only."""
        return self._compiled.address

    def prepare(self) -> None:
        """Compile it, or load it."""
        _ = self._compiled


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
