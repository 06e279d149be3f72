"""What the commands print: reports on stdout, errors on stderr."""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

CHECK_FAILED = 1
BAD_USE = 2
NOT_PROVED = 3
INTERRUPTED = 130
PIPE_COLUMNS = 240
"""Room for a line where no terminal limits it."""


def stdout() -> "Console":
    """Where reports go."""
    from streaming.terminal import terminal

    width = None if sys.stdout.isatty() else PIPE_COLUMNS
    return terminal(width=width)


def stderr() -> "Console":
    """Where errors go."""
    from streaming.terminal import terminal

    return terminal(stderr=True)


def print_error(message: str) -> None:
    """``error: …``, its first line in red."""
    first, _, rest = message.partition("\n")
    console = stderr()
    console.print(f"error: {first}", style="bold red")
    if rest:
        console.print(rest)


def print_note(message: str) -> None:
    """``note: …`` where errors go."""
    stderr().print(f"note: {message}")


@contextmanager
def plain_warnings() -> Generator[None]:
    """Shows what is wrong in a file as one line, ``warning: …``, and other warnings as Python does."""
    import warnings

    def show(message: Any, category: type[Warning], *place: Any) -> None:
        from pulse.errors import PulseWarning

        if issubclass(category, PulseWarning):
            stderr().print(f"warning: {message}", style="yellow")
        else:
            usual(message, category, *place)

    with warnings.catch_warnings():
        usual, warnings.showwarning = warnings.showwarning, show
        yield


_documents: ContextVar[int] = ContextVar("documents", default=0)


@contextmanager
def counting_documents() -> Generator[None]:
    """Let ``documents`` count from here on."""
    token = _documents.set(0)
    try:
        yield
    finally:
        _documents.reset(token)


def documents() -> int:
    """How many JSON documents have been printed."""
    return _documents.get()


def print_json(report: dict[str, Any]) -> None:
    """A report as JSON, nothing else on stdout."""
    _documents.set(_documents.get() + 1)
    from streaming.terminal import json_text

    sys.stdout.write(json_text(report) + "\n")


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values, the values in one column."""
    from rich.table import Table
    from rich.text import Text

    from pulse.printable import printable

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in pairs:
        table.add_row(Text(name, "dim"), Text(printable(value)))
    stdout().print(table)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> None:
    """A table; ``right`` names the columns of numbers."""
    from rich.table import Table
    from rich.text import Text

    from pulse.printable import printable

    table = Table(
        box=None, title=Text(title, "bold"), title_justify="left", padding=(0, 2, 0, 0), header_style="dim"
    )
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    stdout().print(table)


def duration(seconds: float) -> str:
    """A time with the unit that suits it: 45 ns, 12.3 us, 4.56 ms, 7.89 s."""
    if 0 < seconds < 1e-6:
        return f"{seconds * 1e9:.0f} ns"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def size(count: int) -> str:
    """Bytes with the unit that suits them."""
    if count < 1 << 10:
        return f"{count} B"
    return f"{count / (1 << 10):.1f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"
