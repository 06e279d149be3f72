"""Standard output as a target of data; the command then prints to standard error."""

import os
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

_at_end: ContextVar[ExitStack | None] = ContextVar("standard_output", default=None)


@contextmanager
def lend_stdout() -> Generator[None]:
    """Allow commands inside to take standard output, which is restored at the end."""
    with ExitStack() as stack:
        token = _at_end.set(stack)
        try:
            yield
        finally:
            _at_end.reset(token)


def take_stdout(text: bool) -> int:
    """Return a descriptor of standard output for data alone. Raises InputError: closed, or a terminal and not text.

    Anything written to the usual descriptor afterwards, by Python or by C libraries, goes to standard error.
    """
    from pulse.errors import InputError, file_errors

    with file_errors("standard output", "written", InputError):
        if os.isatty(1) and not text:
            raise InputError("standard output: is a terminal; redirect it, or pipe it: pulse run … - | aplay")
        sys.stdout.flush()
        os.write(1, b"")
        data = os.dup(1)
    os.dup2(2, 1)
    stack = _at_end.get()
    if stack is not None:
        stack.callback(_give_back, data)
    return data


def replace_closed_outputs() -> None:
    """Put the null device in the place of a closed standard output or error, so that no other file gets its number.

    Reports to it are lost; data cannot be written to it: ``take_stdout`` refuses it.
    """
    for number, name, flags in ((1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is not None:
            continue
        null = os.open(os.devnull, flags)
        if null != number:
            os.dup2(null, number)
            os.close(null)
        setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def show_any_name() -> None:
    """Allow printing file names that are not UTF-8: their bytes as escapes, which JSON accepts, too."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _give_back(data: int) -> None:
    sys.stdout.flush()
    os.dup2(data, 1)
    os.close(data)
