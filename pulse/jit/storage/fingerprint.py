# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
"""Hashes of everything that a compiled function depends on."""

import functools
import hashlib
import re
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

PACKAGE = Path(__file__).parents[1]
"""``pulse.jit``, which compiles functions and declares what they may call."""


def _update(digest: Any, *parts: object) -> None:
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(f"{len(data)}:".encode() + data)


@functools.cache
def linked_modules(name: str) -> frozenset[str]:
    """Return the modules of pulse, and of the module's own package, that its globals come from."""
    packages = ("pulse.", f"{name.partition('.')[0]}.")
    values = vars(sys.modules[name]).values()
    names = {
        value.__name__ if isinstance(value, types.ModuleType) else _module_name(value) for value in values
    }
    return frozenset(name for name in names if name.startswith(packages) and name in sys.modules)


def _module_name(value: object) -> str:
    return str(getattr(value, "__module__", ""))


@functools.cache
def language_hash() -> str:
    """Return a hash of the files of ``PACKAGE``."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        _update(digest, path.relative_to(PACKAGE).as_posix(), path.read_bytes())
    return digest.hexdigest()


@functools.cache
def sources_hash(name: str) -> str:
    """Return a hash of the source files of a module and of what it depends on.

    That is the modules of pulse and its package that it uses, and this package.
    """
    modules: set[str] = set()
    waiting = {name} & sys.modules.keys()
    while waiting:
        modules |= waiting
        waiting = {linked for module in waiting for linked in linked_modules(module)} - modules
    digest = hashlib.sha256(language_hash().encode())
    for module in sorted(modules):
        path = Path(getattr(sys.modules[module], "__file__", None) or "")
        _update(digest, module, path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _codes(part)


def _absorb_function(digest: Any, function: types.FunctionType, visited: set[int]) -> None:
    _update(digest, function.__module__, function.__qualname__)
    if id(function) in visited:
        return
    visited.add(id(function))
    for cell in function.__closure__ or ():
        _absorb(digest, cell.cell_contents, visited)
    for code in _codes(function.__code__):
        constants = [part for part in code.co_consts if not isinstance(part, types.CodeType)]
        _update(digest, code.co_code, repr(constants), code.co_names, code.co_varnames, code.co_freevars)
        for name in code.co_names:
            if name in function.__globals__:
                _update(digest, name)
                _absorb(digest, function.__globals__[name], visited)


def _absorb(digest: Any, value: Any, visited: set[int]) -> None:
    """Add a value that a function refers to: functions by their code, others by their ``repr``."""
    value = getattr(value, "py_func", value)
    if isinstance(value, types.FunctionType):
        _absorb_function(digest, value, visited)
    elif isinstance(value, types.ModuleType):
        _update(digest, value.__name__)
    elif isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        _update(digest, array.dtype, array.shape, array.tobytes())
    elif isinstance(value, tuple | list):
        for part in cast("Sequence[Any]", value):
            _absorb(digest, part, visited)
    elif isinstance(value, dict):
        for part in cast("dict[Any, Any]", value).items():
            _absorb(digest, part, visited)
    else:
        _update(digest, type(value).__qualname__, re.sub(" at 0x[0-9a-fA-F]+", "", repr(value)))


def fingerprint(function: types.FunctionType, *further: object) -> str:
    """Return a hash of a function, its closure and globals, the sources it uses, and the ``repr`` of further values."""
    digest = hashlib.sha256()
    _update(digest, sources_hash(function.__module__), *further)
    _absorb(digest, function, set())
    return digest.hexdigest()
