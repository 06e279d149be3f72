"""Output of the commands: reports on stdout, errors on stderr."""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from pulse.support.report import Report

CHECK_FAILED = 1
"""The exit code if streamed and offline differ."""
BAD_USE = 2
"""The exit code of errors: wrong arguments, files that cannot be read or written, refusals."""
NOT_PROVED = 3
"""The exit code if no output depends on the inputs, so that nothing is proved."""
INTERRUPTED_EXIT_CODE = 130
"""The exit code after Ctrl-C, as shells have it."""


def stdout() -> "Console":
    """Return the console of standard output, for reports."""
    from streaming.terminal.output import terminal

    return terminal()


def stderr() -> "Console":
    """Return the console of standard error, for errors and messages."""
    from streaming.terminal.output import terminal

    return terminal(stderr=True)


def print_error(message: str) -> None:
    """Print ``error: …`` with its first line in red."""
    first, _, rest = message.partition("\n")
    console = stderr()
    console.print(f"error: {first}", style="bold red")
    if rest:
        console.print(rest)


def print_warning(message: object) -> None:
    """Print ``warning: …`` in yellow on standard error."""
    stderr().print(f"warning: {message}", style="yellow")


def print_note(message: str) -> None:
    """Print ``note: …`` on standard error."""
    stderr().print(f"note: {message}")


@contextmanager
def plain_warnings() -> Generator[None]:
    """Show warnings about files as one line, ``warning: …``, and other warnings as Python does."""
    import warnings

    def show(message: Any, category: type[Warning], *location: Any) -> None:
        from pulse.errors import PulseWarning

        if issubclass(category, PulseWarning):
            print_warning(message)
        else:
            usual(message, category, *location)

    with warnings.catch_warnings():
        usual, warnings.showwarning = warnings.showwarning, show
        yield


_documents: ContextVar[int] = ContextVar("documents", default=0)


@contextmanager
def counting_documents() -> Generator[None]:
    """Restart the count of ``count_documents``."""
    token = _documents.set(0)
    try:
        yield
    finally:
        _documents.reset(token)


def count_documents() -> int:
    """Return the number of JSON documents printed so far."""
    return _documents.get()


def print_json(values: Mapping[str, Any]) -> None:
    """Print one JSON document, which is all of stdout."""
    _documents.set(_documents.get() + 1)
    from pulse.errors import InputError, file_errors
    from pulse.support.report import json_text

    with file_errors("standard output", "written", InputError):
        sys.stdout.write(json_text(values) + "\n")


def print_report(report: "Report", json: bool = False, markdown: bool = False) -> None:
    """Print a report on stdout as text, JSON or Markdown. Raises InputError: both JSON and Markdown."""
    if json and markdown:
        from pulse.errors import InputError

        raise InputError("--json and --markdown are two forms of one report; give one of them")
    if json:
        print_json(report.values())
        return
    from streaming.terminal.output import show_sections, write_text

    if markdown:
        write_text(report.to_markdown())
    else:
        show_sections(stdout(), report.sections())


_as_json: ContextVar[bool] = ContextVar("errors_as_json", default=False)


@contextmanager
def errors_as_json() -> Generator[None]:
    """Print errors inside as JSON, too."""
    token = _as_json.set(True)
    try:
        with counting_documents():
            yield
    finally:
        _as_json.reset(token)


def fail(error: BaseException, message: str) -> None:
    """Print an error; in JSON as ``{"error": {"type", "message", "refusals"}}``, unless a report was printed."""
    print_error(message)
    if not _as_json.get() or count_documents():
        return
    from pulse.errors import PulsifyError

    refusals = [asdict(refusal) for refusal in error.refusals] if isinstance(error, PulsifyError) else []
    class_name = type(error).__name__
    print_json({"error": {"type": class_name, "message": message, "refusals": refusals}})
