"""The machine code in the package: a shared library for each level of processors, and an index of them.

``streaming.libraries`` builds them. They are used only if the index has the checksums of the installed sources.
"""

import ctypes
import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from os import PathLike

from pulse.jit.levels import Level, runnable_level
from pulse.jit.notice import warn_once
from pulse.jit.storage.stamp import Stamp
from pulse.support.blake2 import blake2b
from pulse.support.record import record

INDEX_FORMAT = 1
ROOT = os.path.dirname(__file__).removesuffix("/pulse/jit/storage")
"""The folder of the packages, to which the files of an index are relative."""
FOLDER = f"{ROOT}/pulse/jit/libraries"
INDEX = "index.json"


@record
class LibraryIndex:
    """The sources and the content of the libraries.

    sources    the files of the functions and of their compiler
    sources_checksum    the checksum of their content
    functions  name -> the module that declares it
    checksums  level -> the checksum of its library
    format     the version of the index's fields
    """

    sources: tuple[str, ...]
    sources_checksum: str
    functions: dict[str, str]
    checksums: dict[str, str]
    format: int = INDEX_FORMAT

    def write(self, folder: PathLike[str]) -> None:
        """Write the index to the folder of the libraries."""
        with open(f"{os.fspath(folder)}/{INDEX}", "w") as file:
            file.write(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, folder: str | PathLike[str]) -> "LibraryIndex | None":
        """Read the index of a folder; None if it is missing or has another format.

        Raises OSError: it cannot be read
        """
        try:
            values = json.loads(_content(f"{os.fspath(folder)}/{INDEX}"))
            return cls(**values) if values["format"] == INDEX_FORMAT else None
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as error:
            raise OSError(f"{INDEX} is damaged ({error})") from error


class Library:
    """A loaded shared library and its functions."""

    def __init__(self, index: LibraryIndex, code: ctypes.CDLL) -> None:
        self._index, self._code = index, code

    def address(self, name: str, module: str) -> int | None:
        """Return the address of a function that a module declares; None if it is not in the library."""
        if self._index.functions.get(name) != module:
            return None
        return ctypes.cast(self._code[symbol_of(name)], ctypes.c_void_p).value


def symbol_of(name: str) -> str:
    """Return the symbol of a function in a library."""
    return "pulse_" + re.sub(r"\W", "_", name)


def file_of(level: str) -> str:
    """Return the file name of the library of a level."""
    return f"{level}.so"


def checksum(data: Iterable[bytes]) -> str:
    """Return a checksum of all parts and their lengths."""
    digest = blake2b(digest_size=32)
    for part in data:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()


def checksum_of_sources(sources: Iterable[str]) -> str | None:
    """Return a checksum of files below ``ROOT`` with their names; None if one is missing."""
    try:
        return checksum(part for name in sources for part in (name.encode(), _content(f"{ROOT}/{name}")))
    except OSError:
        return None


def _content(path: str) -> bytes:
    """Return the content of a file. This takes half the time of pathlib, whose import takes 3 ms."""
    with open(path, "rb", buffering=0) as file:
        return file.read()


@cache
def library() -> Library | None:
    """Return the library of this process; None if its kernels are compiled on this machine.

    Raises CompileError: PULSE_LEVEL names a level that does not exist, or that this processor does not have.
    """
    level = runnable_level()
    return None if level is None else load(level, FOLDER)


def load(level: Level, folder: str | PathLike[str]) -> Library | None:
    """Load the library of a folder; None if it is missing, of other sources, or damaged, for which it warns.

    Sources and library are read only if they changed since they were last checked.
    """
    path = f"{os.fspath(folder)}/{file_of(level.name)}"
    try:
        index = LibraryIndex.read(folder)
        if index is None or level.name not in index.checksums:
            return None
        files = [f"{os.fspath(folder)}/{INDEX}", path, *(f"{ROOT}/{name}" for name in index.sources)]
        stamp = Stamp(files)
        if not stamp.is_current():
            if checksum_of_sources(index.sources) != index.sources_checksum:
                return None
            if checksum([_content(path)]) != index.checksums[level.name]:
                raise OSError("its checksum is wrong")
            stamp.write()
        return Library(index, ctypes.CDLL(path))
    except OSError as error:
        warn_once(f"{path}: {error}; kernels are compiled instead, so install the package again")
        return None
