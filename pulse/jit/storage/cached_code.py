"""The compiled form of one function on the disk, for code that is not part of the package's libraries."""

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import FunctionType

from pulse.jit.levels import named_level
from pulse.jit.notice import warn_once
from pulse.jit.python_call import PythonCall
from pulse.jit.storage import cache, kernel_file
from pulse.jit.storage.fingerprint import fingerprint
from pulse.jit.storage.kernel_file import DamagedError, NativeCode
from pulse.support.record import record

FINGERPRINT_DIGITS = 32
"""The digits of a fingerprint in names."""


@record
class CacheEntry:
    """The cached form of a function, identified by its name and everything that its code depends on."""

    name: str
    fingerprint: str

    @classmethod
    def of(cls, name: str, function: FunctionType, signature: str, python: PythonCall | None) -> "CacheEntry":
        """Return the cached form of a function; ``signature`` describes its arguments."""
        return cls(name, fingerprint(function, signature, python))

    def with_rows(self, rows: frozenset[int]) -> "CacheEntry":
        """Return the cached form of the function compiled with only some rows of dispatchers."""
        digest = sha256(f"{self.fingerprint} {sorted(rows)}".encode())
        return CacheEntry(self.name, digest.hexdigest())

    def of_rows(self, rows: Sequence[tuple[int, ...]]) -> "CacheEntry":
        """Return the cached form of the functions for single rows, given their words."""
        digest = sha256(f"{self.fingerprint} rows {list(rows)}".encode())
        return CacheEntry(f"{self.name}_rows", digest.hexdigest())

    @property
    def symbol(self) -> str:
        """The name in the object code, which includes the processor level: one program may link two levels."""
        level = named_level()
        of_level = "" if level is None else f"_{re.sub(r'[^a-z0-9]', '_', level.name)}"
        return f"pulse_{self.fingerprint[:FINGERPRINT_DIGITS]}{of_level}"

    @property
    def path(self) -> Path | None:
        """The file; None if nothing is stored."""
        folder = cache.cache_location().folder
        name = re.sub(r"[^\w.-]", "_", self.name)
        return folder and folder / f"{name}-{self.fingerprint[:FINGERPRINT_DIGITS]}.kernel"

    def read(self) -> NativeCode | None:
        """Read the code from the disk; None if it is missing, or not trusted, for which it warns once."""
        path = self.path
        if path is None:
            return None
        try:
            return kernel_file.read(path, cache.versions(), self._identity())
        except DamagedError as error:
            warn_once(
                f"{path}: {error}; it is compiled again and replaced, like all other damaged files", "damage"
            )
            return None

    def write(self, code: NativeCode) -> str | None:
        """Write the code; return why it could not be stored, for which it warns once, or None."""
        path = self.path
        if path is None:
            return None
        try:
            kernel_file.write(path, code, cache.versions(), self._identity())
        except OSError as error:
            if self.read() is None:  # on Windows, a file that another process reads cannot be replaced
                storage_error = error.strerror or str(error)
                warn_once(
                    f"{path.parent}: {storage_error}, so compiled kernels are not cached and the next process compiles "
                    "them again; free the disk or set PULSE_CACHE to another folder",
                    "storage_error",
                )
                return storage_error
        return None

    def _identity(self) -> dict[str, str]:
        return {"name": self.name, "fingerprint": self.fingerprint}
