"""Text for terminals and reports. Names come from files that are not trusted: their control characters are escaped."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pulse.printable import printable, printable_lines


class Terminal(Console):
    """A console that escapes control characters in whatever it prints; styles and lines are its own.

    Columns are as wide as the text in them only where it was ``printable`` before.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)


def terminal(stderr: bool = False, width: int | None = None, soft_wrap: bool = True) -> Terminal:
    """A console on stdout or stderr: text as it is, without markup."""
    return Terminal(stderr=stderr, highlight=False, markup=False, soft_wrap=soft_wrap, width=width)


def write_text(text: str, file: TextIO | None = None) -> None:
    """Write lines of text as they are, but for control characters."""
    (file or sys.stdout).write(printable_lines(text))


def json_text(value: Mapping[str, Any]) -> str:
    """JSON that says all of a value in printable characters; what is not printable is escaped as JSON does."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return "\n".join(line if line.isprintable() else _escaped(line) for line in text.split("\n"))


def _escaped(line: str) -> str:
    return "".join(each if printable(each) == each else json.dumps(each)[1:-1] for each in line)
