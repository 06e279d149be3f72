"""A bar for what takes long."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is."""


@contextmanager
def progress(title: str, shown: bool = True) -> Generator[Callable[[int, int | None], None]]:
    """A bar on stderr, where someone can see it; it moves to and fro where nobody knows how much there is.

    shown  False: no bar, since something else is written to the terminal meanwhile
    """
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from streaming.terminal import terminal

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    console = terminal(stderr=True)
    if not (shown and console.is_terminal):
        yield lambda done, total: None
        return
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)
