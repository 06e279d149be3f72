"""A progress bar for long operations."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from pulse.support.printable import printable

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

Progress = Callable[[int, int], None]
"""Called with the amount done and the total."""


MAX_SILENT_S = 0.3
"""Operations of at most this many seconds show no bar, and do not import what draws it."""

BAR_COLUMNS = 56
"""The columns of a bar, its percentage and its remaining time, after the title."""
MIN_TITLE_COLUMNS = 20
"""A title is not shortened further than this, however narrow the terminal is."""


@contextmanager
def progress(title: str, shown: bool = True) -> Generator[Callable[[int, int | None], None]]:
    """Show a bar on stderr, if stderr is a terminal; it moves to and fro if the total is unknown.

    shown  False: no bar, since something else is written to the terminal meanwhile
    """
    with ExitStack() as stack:
        bar: RichProgress | None = None
        waiting, began = shown, monotonic()

        def advance(done: int, total: int | None) -> None:
            nonlocal bar, waiting
            if waiting and monotonic() - began > MAX_SILENT_S:
                waiting, bar = False, _bar(title)
                if bar is not None:
                    stack.enter_context(bar)
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done, total=total)

        yield advance


def _bar(title: str) -> "RichProgress | None":
    """Return None if stderr is not a terminal; else a bar with a title."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    from streaming.terminal.output import terminal

    console = terminal(stderr=True)
    if not console.is_terminal:
        return None
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    bar = RichProgress(*columns, console=console, transient=True)
    bar.add_task(_shorten(printable(title), max(console.width - BAR_COLUMNS, MIN_TITLE_COLUMNS)), total=None)
    return bar


def _shorten(title: str, columns: int) -> str:
    """Return a title of at most this many columns: its beginning and its end."""
    if len(title) <= columns:
        return title
    start = (columns - 1) // 2
    return f"{title[:start]}…{title[len(title) - (columns - 1 - start) :]}"
