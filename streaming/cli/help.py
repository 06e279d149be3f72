"""The text of a command's help, laid out for the width of the terminal."""

import re
import shutil
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from inspect import cleandoc
from typing import Any

_MAX_COLUMNS = 110
"""Help is not wider, even in a wider terminal."""
_MARGIN_COLUMNS = 2
_INDENT_COLUMNS = 2
_GAP_COLUMNS = 3
_MAX_COMMAND_COLUMNS = 46
"""The widest command, in columns, whose description is on its line; those of wider ones are below."""
_MIN_DESCRIPTION_COLUMNS = 20
"""A description on the line of its command has at least this many columns; otherwise all are below."""


@contextmanager
def lay_out(command: Any) -> Generator[None]:
    """Lay out the help of ``command`` for the terminal while open: paragraphs are wrapped, lists have two columns.

    A list begins with a line that ends in a colon; in its indented lines, two or more spaces separate a command from
    its description.
    """
    text = command.help
    command.help = _lay_out_text(text)
    try:
        yield
    finally:
        command.help = text


def _lay_out_text(text: str) -> str:
    """Return the text in rich's markup."""
    width = max(min(shutil.get_terminal_size().columns, _MAX_COLUMNS) - _MARGIN_COLUMNS, 1)
    first, *paragraphs = cleandoc(text).split("\n\n")
    return "\n\n".join(
        [
            _escape(" ".join(first.split())),
            *(_lay_out_paragraph(paragraph, width) for paragraph in paragraphs),
        ]
    )


def _lay_out_paragraph(paragraph: str, width: int) -> str:
    head, *lines = paragraph.splitlines()
    if head.endswith(":") and lines and lines[0].startswith(" "):
        return "\n".join(
            [f"[bold]{_escape(head.removesuffix(':'))}[/bold]", *_lay_out_commands(lines, width)]
        )
    return _escape(textwrap.fill(" ".join(paragraph.split()), width, break_on_hyphens=False))


def _lay_out_commands(lines: list[str], width: int) -> list[str]:
    pairs = [(*re.split(" {2,}", line.strip(), maxsplit=1), "")[:2] for line in lines]
    lengths = [len(command) for command, description in pairs if description]
    longest = min(_MAX_COMMAND_COLUMNS, width - _INDENT_COLUMNS - _GAP_COLUMNS - _MIN_DESCRIPTION_COLUMNS)
    column = max((length for length in lengths if length <= longest), default=0)
    rows: list[tuple[str, str]] = []
    for command, description in pairs:
        fits = len(command) <= column
        left = _INDENT_COLUMNS + column + _GAP_COLUMNS if fits else 2 * _INDENT_COLUMNS
        described = textwrap.wrap(description, max(width - left, 1))
        first = described.pop(0) if fits and described else ""
        rows.append(((" " * _INDENT_COLUMNS + command).ljust(left if first else 0), first))
        rows += [(" " * left, line) for line in described]
    return [f"[cyan]{_escape(start)}[/cyan]{_escape(line)}" for start, line in rows]


def _escape(text: str) -> str:
    """Escape brackets, so that they are not markup."""
    return text.replace("[", r"\[")
