# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
"""Functions that are compiled once on a machine: loaded from the disk, or compiled and stored there."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

from pulse.jit.python_call import PythonCall
from pulse.jit.storage.package_library import library
from pulse.support.not_copyable import NotCopyable

if TYPE_CHECKING:
    from pathlib import Path

    from pulse.jit.storage.cached_code import CacheEntry
    from pulse.jit.storage.kernel_file import NativeCode

COMPILING = threading.RLock()
"""The lock of the thread that compiles or links."""


class CompiledFunction(NotCopyable, ABC, reason="its address is of this process; look it up by name there"):
    """A Python function as a C function; compiled, or loaded from the disk, at its first use.

    options    options of numba
    python     how Python calls it; None if only compiled code does
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        options: Mapping[str, Any],
        python: PythonCall | None = None,
    ) -> None:
        self.name = name
        self.function = function
        self.came_from_disk = False
        """Whether the compiled form came from the disk."""
        self.storage_error: str | None = None
        """Why the compiled form could not be stored there; None if it was."""
        self.options = options
        self._python = python
        self.loaded_address: int | None = None
        """Its address in this process; None before it is loaded."""

    @property
    @abstractmethod
    def signature(self) -> Any:
        """The signature for numba."""

    @property
    @abstractmethod
    def signature_text(self) -> str:
        """The signature as text, made without numba, with the layout of rows."""

    @property
    def address(self) -> int:
        """The address in this process of the C function, or of its wrapper for Python."""
        if self.loaded_address is None:
            self.prepare()
        return cast(int, self.loaded_address)

    @property
    def is_cached(self) -> bool:
        """Whether the complete compiled form is on the disk."""
        return self._find_packaged() is not None or self.cache_entry.read() is not None

    def prepare(self) -> None:
        """Load or compile the function. Raises CompileError: it cannot be compiled."""
        with COMPILING:
            if self.loaded_address is None:
                self.loaded_address = self._prepare()

    def compile(self, symbol: str) -> "NativeCode":
        """Compile the function for the processor; ``symbol`` is its name in the code.

        Raises CompileError: numba cannot compile it, or it needs the interpreter.
        """
        from pulse.jit.codegen.native_code import emit_code, optimise

        module = optimise(self.name, symbol, self.function, self.signature, self.options, self._python)
        return emit_code(module, symbol)

    def code(self, only: frozenset[int] | None = None) -> "NativeCode":
        """Return the object code, from the disk or compiled and stored there.

        only    the rows of dispatchers to compile, if it calls any; None: all
        Raises  CompileError: it cannot be compiled
        """
        from pulse.jit.language.declared import DISPATCHED_ROWS

        entry = self.cache_entry
        if only is not None:
            entry = entry.with_rows(only)
        token = DISPATCHED_ROWS.set(only)
        try:
            return self._read_or_compile(entry)
        finally:
            DISPATCHED_ROWS.reset(token)

    def path(self) -> "Path | None":
        """Return the file of the function; None if nothing is stored."""
        return self.cache_entry.path

    @cached_property
    def cache_entry(self) -> "CacheEntry":
        """Its cached form."""
        from pulse.jit.storage.cached_code import CacheEntry

        return CacheEntry.of(self.name, cast(FunctionType, self.function), self.signature_text, self._python)

    def _find_packaged(self) -> int | None:
        """Return the address in the machine code that comes with the package; None if it is not there."""
        index = library()
        return index and index.address(self.name, self.function.__module__)

    def _prepare(self) -> int:
        if (packaged := self._find_packaged()) is not None:
            self.came_from_disk = True
            return packaged
        from pulse.jit.linking import link
        from pulse.jit.storage.cache import warn_if_nothing_is_cached

        warn_if_nothing_is_cached()
        return link(self.name, self._read_or_compile(self.cache_entry))

    def _read_or_compile(self, entry: "CacheEntry") -> "NativeCode":
        """Return the object code, from the disk or compiled and stored there."""
        code = entry.read()
        if code is not None:
            self.came_from_disk = True
            return code
        code = self.compile(entry.symbol)
        self.storage_error = entry.write(code)
        return code
