"""Text for terminals and reports. Names come from files that are not trusted: their control characters are escaped."""

import sys
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text as RichText

from pulse.errors import InputError, file_errors
from pulse.support.printable import printable, printable_lines
from pulse.support.report import Pairs, Section, Text


class Terminal(Console):
    """A console that escapes control characters in all text; styles and lines are its own.

    Columns are as wide as the text in them only if it was ``printable`` before.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)


def terminal(stderr: bool = False, width: int | None = None, soft_wrap: bool = True) -> Terminal:
    """Create a console on stdout or stderr, which prints text unchanged, without markup."""
    return Terminal(
        stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap, width=width
    )


def write_text(text: str, file: TextIO | None = None) -> None:
    """Write lines of text; control characters are escaped. Raises InputError: standard output cannot be written."""
    with file_errors("standard output", "written", InputError):
        (file or sys.stdout).write(printable_lines(text))


def show_sections(console: Console, sections: Iterable[Section]) -> None:
    """Print the sections of a report, separated by empty lines.

    In a pipe or a file, lines are as long as their text, and do not end with spaces.
    """
    if not console.is_terminal:
        with file_errors("standard output", "written", InputError):
            console.file.write("\n\n".join(section.text() for section in sections) + "\n")
        return
    for index, section in enumerate(sections):
        if index:
            console.print()
        console.print(_renderable(section))


def _renderable(section: Section) -> RenderableType:
    if isinstance(section, Text):
        return RichText(section.words, section.style)
    if isinstance(section, Pairs):
        grid = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for name, value in section.rows:
            grid.add_row(RichText(printable(name), "dim"), RichText(printable(value)))
        return grid
    title = RichText(printable(section.title), "bold")
    grid = Table(
        box=None,
        title=title,
        title_justify="left",
        padding=(0, 2, 0, 0),
        header_style="dim",
        show_header=any(section.columns),
    )
    for index, column in enumerate(section.columns):
        grid.add_column(
            printable(column), justify="right" if index in section.right else "left", overflow="fold"
        )
    for row in section.rows:
        grid.add_row(*(RichText(printable(cell)) for cell in row))
    return grid
