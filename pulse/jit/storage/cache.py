# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
"""The folder of compiled kernels, and its required owner.

Its files are machine code that this process runs. So on POSIX the folders and files must belong to the user or to
root and must not be writable by others; ``PULSE_CACHE_SHARED=1`` accepts others' files too.
"""

import atexit
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pulse.jit.notice import warn_once
from pulse.jit.storage.cache_root import cache_root
from pulse.support.record import record
from pulse.version import __version__

PROBE_BYTES = 1 << 17
"""The size of a test file, as large as the largest kernels."""


@record
class CacheLocation:
    """The folder in use: the folder in PULSE_CACHE, the user's cache folder, a temporary one, or none.

    path     the folder that PULSE_CACHE names
    folder   its subfolder for these versions and this processor; None: nothing is stored
    kind     which of the folders it is
    refused  why the requested folder is not used; a temporary one is used instead if there is space
    """

    path: Path
    folder: Path | None
    kind: Literal["environment", "user", "temporary"]
    refused: str | None = None


@cache
def cache_location() -> CacheLocation:
    """Return the folder for compiled kernels, chosen once per process; a temporary one is removed at its end."""
    named = os.environ.get("PULSE_CACHE")
    path = Path(cache_root())
    folder = path / _versions_name()
    refused = _reason_unusable(path) or _reason_unusable(folder)
    if refused is None:
        return CacheLocation(path, folder, "environment" if named else "user")
    try:
        temporary = Path(tempfile.mkdtemp(prefix="pulse-"))
    except OSError:
        return CacheLocation(path, None, "temporary", refused)
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return CacheLocation(temporary, temporary / folder.name, "temporary", refused)


def warn_if_nothing_is_cached() -> None:
    """Warn once if compiled kernels are lost when the process ends."""
    if refused := cache_location().refused:
        warn_once(f"{refused}; until then each process compiles the kernels again")


def make_folder(folder: Path) -> None:
    """Make a folder and its parents if they are missing. Raises OSError: they cannot be made."""
    for missing in reversed([parent for parent in (folder, *folder.parents) if not parent.exists()]):
        missing.mkdir(mode=0o777 if is_shared() else 0o700, exist_ok=True)


def is_shared() -> bool:
    """Return whether the user accepts files that others wrote."""
    return os.environ.get("PULSE_CACHE_SHARED", "") not in ("", "0")


def distrust_reason(status: os.stat_result) -> str | None:
    """Return why a file or folder that others can change is not read; None if they cannot."""
    if os.name != "posix" or is_shared():
        return None
    if status.st_uid not in (0, os.geteuid()):
        return f"belongs to another user (uid {status.st_uid})"
    if not stat.S_ISLNK(status.st_mode) and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written to by other users"
    return None


def storage_problem(folder: Path) -> str | None:
    """Return why no further kernel can be stored in the folder, or None; tries a temporary file of ``PROBE_BYTES``."""
    try:
        make_folder(folder)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        return error.strerror or str(error)
    return None


@cache
def versions() -> dict[str, Any]:
    """Return everything that compiled code depends on except its function."""
    import llvmlite

    from pulse.jit.processor import processor

    here = processor()
    return {
        "pulse": __version__,
        "python": sys.version,
        "numba": _numba_version(),
        "llvmlite": llvmlite.__version__,
        "triple": here.triple,
        "processor": here.name,
        "features": here.features,
    }


def _numba_version() -> str:
    """Return the version of numba, from the name of its metadata folder.

    Importing numba takes half a second, and importlib.metadata a tenth of a warm start.
    """
    spec = find_spec("numba")
    origin = None if spec is None else spec.origin
    folders = [] if origin is None else list(Path(origin).parents[1].glob("numba-*.dist-info"))
    if len(folders) == 1:
        return folders[0].name.removeprefix("numba-").removesuffix(".dist-info")
    from importlib.metadata import version

    return version("numba")


def _versions_name() -> str:
    numbers = versions()
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8)
    return f"{__version__}-numba{numbers['numba']}-{digest.hexdigest()}"


def _reason_unusable(folder: Path) -> str | None:
    """Return why a folder cannot be used and what to do, or None; a missing folder is made."""
    try:
        make_folder(folder)
        reason = distrust_reason(folder.lstat()) or distrust_reason(folder.stat())
    except OSError as error:
        return f"{folder}: {error.strerror or error}; set PULSE_CACHE to a folder that can be written"
    if reason is None:
        return None
    return (
        f"{folder} {reason}, so no compiled code is read from it; remove that permission (chmod go-w, chown), set "
        "PULSE_CACHE to a folder of your own, or PULSE_CACHE_SHARED=1 to accept other users' code"
    )
