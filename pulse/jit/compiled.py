# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
"""A function that is compiled once on a machine: found on the disk, or compiled and kept there."""

import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, cast

from pulse.jit import kernel_file
from pulse.jit.cache import cache_location, tell_once, tell_where_nothing_is_kept, versions
from pulse.jit.fingerprint import fingerprint
from pulse.jit.kernel_file import DamagedError
from pulse.jit.linking import NativeCode, linked
from pulse.jit.native_code import emitted, optimised
from pulse.jit.python_call import Form
from pulse.not_copyable import NotCopyable

_compiling = threading.RLock()
DIGITS = 32
"""Of a fingerprint, in names."""


class CompiledFunction(NotCopyable):
    """A Python function as a C function; compiled, or loaded from the disk, at its first use.

    signature  numba's
    options    for numba
    form       how Python calls it, where it does
    """

    instead = "its address is of this process; find it by its name in the other one"

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        signature: Any,
        options: Mapping[str, Any],
        form: Form | None = None,
    ) -> None:
        self.name = name
        self.function = function
        self.signature = signature
        self.cached = False
        """Whether the compiled form came from the disk."""
        self.unkept: str | None = None
        """Why the compiled form could not be kept there."""
        self._options = options
        self._form = form
        self._address: int | None = None

    @property
    def address(self) -> int:
        """Where it is in this process: the C function, or the one of ``form`` for Python."""
        if self._address is None:
            self.prepare()
        return cast(int, self._address)

    @property
    def kept(self) -> bool:
        """Whether the compiled form is on the disk, whole."""
        return self._read(self._fingerprint()) is not None

    def prepare(self) -> None:
        """Compile it, or load it. Raises CompileError."""
        with _compiling:
            if self._address is None:
                self._address = self._prepared()

    def path(self) -> Path | None:
        """Its file; None where nothing is kept."""
        return self._path(self._fingerprint())

    def _prepared(self) -> int:
        tell_where_nothing_is_kept()
        key = self._fingerprint()
        if code := self._read(key):
            self.cached = True
            return linked(self.name, code)
        symbol = f"pulse_{key[:DIGITS]}"
        module = optimised(self.name, symbol, self.function, self.signature, self._options, self._form)
        code = emitted(module, symbol)
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
        """The code on the disk; None where there is none, or none to trust, which is told once."""
        path = self._path(key)
        if path is None:
            return None
        try:
            return kernel_file.read(path, versions(), self._identity(key))
        except DamagedError as error:
            tell_once(
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
                tell_once(
                    f"{path.parent}: {self.unkept}, so compiled kernels are not kept and compiled again by the next "
                    "process; free the disk or set PULSE_CACHE to another folder",
                    "unkept",
                )
