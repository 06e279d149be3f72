"""Docstrings of this repository as reStructuredText: a column of names with their descriptions becomes a list."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from sphinx.application import Sphinx

ENTRY = re.compile(r"([A-Za-z_]\w*(?:\.\w+)?(?:, \w+)*)\s{2,}(\S.*)|(Raises) (\S.*)")
CODE = re.compile(r"(``.+?``)")
SPECIAL = re.compile(r"[*|\\`]|_(?!\w)")


def escape(text: str) -> str:
    """Escape what reStructuredText would read as markup, except in code."""
    parts = CODE.split(text)
    return "".join(part if place % 2 else SPECIAL.sub(r"\\\g<0>", part) for place, part in enumerate(parts))


def entries(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a paragraph, a column of names with descriptions, as a list of definitions."""
    for line in lines:
        if match := ENTRY.fullmatch(line):
            name, text = (part for part in match.groups() if part)
            yield "Raises" if name == "Raises" else f"``{name}``"
            yield f"    {escape(text)}"
        else:
            yield f"    {escape(line.strip())}"


def paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Yield the runs of lines that are not empty."""
    yield from (list(run) for full, run in groupby(lines, lambda line: bool(line.strip())) if full)


def as_restructured_text(lines: list[str]) -> list[str]:
    """Convert a whole docstring."""
    result: list[str] = []
    for paragraph in paragraphs(lines):
        if ENTRY.fullmatch(paragraph[0]):
            result += [*entries(paragraph), ""]
        elif paragraph[0].startswith(" "):
            result += ["::", "", *(f"    {line}" for line in paragraph), ""]
        else:
            result += [*(escape(line) for line in paragraph), ""]
    return result


def rewrite(_app: Sphinx, what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring in place, as autodoc requires; the docstring of a module is removed."""
    lines[:] = [] if what == "module" else as_restructured_text(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension; Sphinx calls it."""
    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True}
