# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
"""A function that is compiled once on a machine: found on the disk, or compiled and kept there."""

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, cast

from pulse.jit import kernel_file
from pulse.jit.cache import cache_location, versions, warn_if_nothing_is_kept, warn_once
from pulse.jit.fingerprint import fingerprint
from pulse.jit.kernel_file import DamagedError, NativeCode
from pulse.jit.library import library
from pulse.jit.python_call import CallForm
from pulse.not_copyable import NotCopyable

_compiling = threading.RLock()
DIGITS = 32
"""Of a fingerprint, in names."""


class CompiledFunction(NotCopyable, ABC):
    """A Python function as a C function; compiled, or loaded from the disk, at its first use.

    options    for numba
    form       how Python calls it, where it does
    """

    instead = "its address is of this process; find it by its name in the other one"

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        options: Mapping[str, Any],
        form: CallForm | None = None,
    ) -> None:
        self.name = name
        self.function = function
        self.cached = False
        """Whether the compiled form came from the disk."""
        self.unkept: str | None = None
        """Why the compiled form could not be kept there."""
        self.options = options
        self._form = form
        self.loaded_address: int | None = None
        """Its address in this process; None before it is loaded."""

    @property
    @abstractmethod
    def signature(self) -> Any:
        """Numba's."""

    @property
    def address(self) -> int:
        """Where it is in this process: the C function, or the one of ``form`` for Python."""
        if self.loaded_address is None:
            self.prepare()
        return cast(int, self.loaded_address)

    @property
    def kept(self) -> bool:
        """Whether the compiled form is on the disk, whole."""
        return self._carried() is not None or self._read(self._fingerprint()) is not None

    def prepare(self) -> None:
        """Compile it, or load it. Raises CompileError."""
        with _compiling:
            if self.loaded_address is None:
                self.loaded_address = self._prepared()

    def compiled(self, symbol: str) -> NativeCode:
        """Compile it for the processor; ``symbol`` is its name in the code. Raises CompileError."""
        from pulse.jit.native_code import emitted, optimised

        module = optimised(self.name, symbol, self.function, self.signature, self.options, self._form)
        return emitted(module, symbol)

    def path(self) -> Path | None:
        """Its file; None if nothing is kept."""
        return self._path(self._fingerprint())

    def _carried(self) -> int | None:
        """Its address in the machine code that comes with the package; None if it is not there."""
        found = library()
        return found and found.address(self.name, self.function.__module__)

    def _prepared(self) -> int:
        if (carried := self._carried()) is not None:
            self.cached = True
            return carried
        from pulse.jit.linking import linked

        warn_if_nothing_is_kept()
        key = self._fingerprint()
        if code := self._read(key):
            self.cached = True
            return linked(self.name, code)
        code = self.compiled(f"pulse_{key[:DIGITS]}")
        address = linked(self.name, code)
        self._keep(key, code)
        return address

    def _fingerprint(self) -> str:
        return fingerprint(cast(FunctionType, self.function), self.signature, self._form)

    def _path(self, key: str) -> Path | None:
        folder = cache_location().folder
        name = re.sub(r"[^\w.-]", "_", self.name)
        return folder and folder / f"{name}-{key[:DIGITS]}.kernel"

    def _identity(self, key: str) -> dict[str, str]:
        return {"name": self.name, "fingerprint": key}

    def _read(self, key: str) -> NativeCode | None:
        """The code on the disk; None if there is none, or none to trust, which a warning says once."""
        path = self._path(key)
        if path is None:
            return None
        try:
            return kernel_file.read(path, versions(), self._identity(key))
        except DamagedError as error:
            warn_once(
                f"{path}: {error}; it is compiled again and replaced, and so is every other that is damaged",
                "damage",
            )
            return None

    def _keep(self, key: str, code: NativeCode) -> None:
        path = self._path(key)
        if path is None:
            return
        try:
            kernel_file.write(path, code, versions(), self._identity(key))
        except OSError as error:
            if self._read(key) is None:  # on Windows, a file that another process reads cannot be replaced
                self.unkept = error.strerror or str(error)
                warn_once(
                    f"{path.parent}: {self.unkept}, so compiled kernels are not kept and compiled again by the next "
                    "process; free the disk or set PULSE_CACHE to another folder",
                    "unkept",
                )
