"""Processes that compile for this one, and answer in lines of JSON."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

from pulse.errors import CompileError, PulseError
from pulse.jit.storage.cache import cache_location

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def is_python() -> bool:
    """Return whether ``sys.executable`` is an interpreter; if Python is embedded, it may be the program, or empty."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def python_process(module: str, *arguments: str) -> "subprocess.Popen[bytes]":
    """Start a process in ``serve_requests`` of a module, with the paths and the kernel folder of this one."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from {module} import serve_requests; serve_requests()"
    command = [sys.executable, *["-O"] * sys.flags.optimize, "-c", code, *arguments]
    environment = {**os.environ, "PULSE_CACHE": str(cache_location().path)}
    return subprocess.Popen(
        command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )


def reserve_stdout() -> TextIO:
    """Return stdout for answers; what else is printed goes to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    return answers


def write_answer(answers: TextIO, compute: "Callable[[], DataclassInstance]") -> None:
    """Write a result, or its PulseError."""
    try:
        values = asdict(compute())
    except PulseError as error:
        values = {"error": str(error)}
    print(json.dumps(values), file=answers, flush=True)


def read_answer(line: bytes) -> dict[str, Any]:
    """Return the fields of a result. Raises CompileError: the process wrote an error."""
    values = json.loads(line)
    if "error" in values:
        raise CompileError(values["error"])
    return values
