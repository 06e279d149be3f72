# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportPrivateUsage=false
"""Where compiled kernels are kept, and how one is found again.

One file holds one compiled function, and its name says everything that its content depends on: the folder is
keyed by the versions of pulse, Python and numba and by the processor; the file by the kernel's name, its
function and the source files that the function uses. So a file is never stale and is never changed, only
replaced by an equal one: processes may compile at once without a lock.
"""

import atexit
import functools
import hashlib
import os
import pickle
import re
import shutil
import sys
import tempfile
import types
import uuid
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from pulse.version import __version__


@dataclass(frozen=True)
class CacheLocation:
    """The folder in use and why: PULSE_CACHE says so, the user's cache folder, or neither can be written.

    refused  the folder that cannot be written, where a temporary one stands for it
    """

    path: Path
    kind: Literal["environment", "user", "temporary"]
    refused: Path | None = None


def user_cache() -> Path:
    """The platform's folder for a user's caches."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        root = "~/Library/Caches"
    else:
        root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(root)) / "pulse-stream"


def writable(folder: Path) -> bool:
    """Whether files can be made in the folder, which is created if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


@functools.cache
def cache_location() -> CacheLocation:
    """The folder for compiled kernels, decided once per process; a temporary one lasts as long as that."""
    if named := os.environ.get("PULSE_CACHE"):
        wanted = CacheLocation(Path(named).expanduser().absolute(), "environment")
    else:
        wanted = CacheLocation(user_cache(), "user")
    if writable(wanted.path):
        return wanted
    folder = tempfile.mkdtemp(prefix="pulse-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return CacheLocation(Path(folder), "temporary", wanted.path)


def _update(digest: Any, *parts: object) -> None:
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(f"{len(data)}:".encode() + data)


@functools.cache
def _links(name: str) -> frozenset[str]:
    """The modules of pulse, and of the module's own package, that its globals come from."""
    packages = ("pulse.", f"{name.partition('.')[0]}.")
    values = vars(sys.modules[name]).values()
    homes = {value.__name__ if isinstance(value, types.ModuleType) else _home(value) for value in values}
    return frozenset(home for home in homes if home.startswith(packages) and home in sys.modules)


def _home(value: object) -> str:
    return str(getattr(value, "__module__", ""))


@functools.cache
def sources_hash(name: str) -> str:
    """A hash of the source files of a module and of all modules of pulse and its own package that it uses."""
    modules: set[str] = set()
    ahead = {name} & sys.modules.keys()
    while ahead:
        modules |= ahead
        ahead = {link for module in ahead for link in _links(module)} - modules
    digest = hashlib.sha256()
    for module in sorted(modules):
        path = Path(getattr(sys.modules[module], "__file__", None) or "")
        _update(digest, module, path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _codes(part)


def _absorb_function(digest: Any, function: types.FunctionType, seen: set[int]) -> None:
    _update(digest, function.__module__, function.__qualname__)
    if id(function) in seen:
        return
    seen.add(id(function))
    for cell in function.__closure__ or ():
        _absorb(digest, cell.cell_contents, seen)
    for code in _codes(function.__code__):
        constants = [part for part in code.co_consts if not isinstance(part, types.CodeType)]
        _update(digest, code.co_code, repr(constants), code.co_names, code.co_varnames, code.co_freevars)
        for name in code.co_names:
            if name in function.__globals__:
                _update(digest, name)
                _absorb(digest, function.__globals__[name], seen)


def _absorb(digest: Any, value: Any, seen: set[int]) -> None:
    """Add a value that a function refers to: functions by what they do, other things by how they print."""
    value = getattr(value, "py_func", value)
    if isinstance(value, types.FunctionType):
        _absorb_function(digest, value, seen)
    elif isinstance(value, types.ModuleType):
        _update(digest, value.__name__)
    elif isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        _update(digest, array.dtype, array.shape, array.tobytes())
    elif isinstance(value, tuple | list):
        for part in cast("Sequence[Any]", value):
            _absorb(digest, part, seen)
    elif isinstance(value, dict):
        for part in cast("dict[Any, Any]", value).items():
            _absorb(digest, part, seen)
    else:
        _update(digest, type(value).__qualname__, re.sub(" at 0x[0-9a-fA-F]+", "", repr(value)))


def fingerprint(function: types.FunctionType) -> str:
    """A hash of a function, of what it closes over and refers to, and of the sources that it uses."""
    digest = hashlib.sha256()
    _update(digest, sources_hash(function.__module__))
    _absorb(digest, function, set())
    return digest.hexdigest()


class FunctionCache:
    """The disk cache of one function, in the form that numba's compilers ask for."""

    def __init__(self, name: str, function: types.FunctionType) -> None:
        self.name = name
        self.function = function
        self.hit = False

    def path(self, target_context: Any) -> Path:
        """The file of this function for this processor."""
        import numba
        from numba.core import config as numba_config

        config: Any = numba_config
        processor = target_context.codegen().magic_tuple()
        options = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE)
        digest = hashlib.sha256()
        _update(digest, sys.version, numba.__version__, *processor, options)
        folder = f"{__version__}-numba{numba.__version__}-{digest.hexdigest()[:16]}"
        return cache_location().path / folder / f"{self.name}-{fingerprint(self.function)[:32]}.kernel"

    def kept(self) -> bool:
        """Whether the compiled function is on the disk."""
        from numba.core.registry import cpu_target

        return self.path(cpu_target.target_context).is_file()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None. An unreadable file counts as none; it is written anew."""
        from numba.core.compiler import CompileResult

        del sig  # a kernel has one signature
        try:
            payload = pickle.loads(self.path(target_context).read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        self.hit = True
        rebuild: Any = CompileResult._rebuild
        return rebuild(target_context, *payload)

    def save_overload(self, sig: Any, compiled: Any) -> None:
        """Keep the compiled function; warns when the disk refuses: it then lasts as long as the process."""
        from numba.core.serialize import dumps

        del sig
        path = self.path(compiled.target_context)
        data = dumps(compiled._reduce())
        unfinished = path.with_suffix(f".{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(data)
            os.replace(unfinished, path)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            if not path.exists():  # on Windows, a file that another process reads cannot be replaced
                warnings.warn(
                    f"kernel {self.name} is not kept for next time: {error}", RuntimeWarning, stacklevel=2
                )
