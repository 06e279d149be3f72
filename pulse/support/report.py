"""Reports: what was measured, proved or written, as sections to read and as values for JSON."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from math import isfinite
from typing import Any, TypeAlias, cast

from pulse.support.printable import printable, printable_lines
from pulse.support.record import record


@record
class Pairs:
    """Names and values, one pair a line."""

    rows: Sequence[tuple[str, str]]

    def text(self) -> str:
        """Return the values in one column."""
        return _align(self.rows, ())

    def markdown(self) -> str:
        """Return a table without a header."""
        return _markdown_table(("", ""), self.rows, ())


@record
class Table:
    """A table with a title and names of its columns; ``right``: the indices of columns of numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int] = ()

    def text(self) -> str:
        """Return the title, then columns as wide as their contents."""
        header = [self.columns] if any(self.columns) else []
        return f"{printable(self.title)}\n{_align([*header, *self.rows], self.right)}"

    def markdown(self) -> str:
        """Return a heading and a table."""
        return f"## {_escape(self.title)}\n\n{_markdown_table(self.columns, self.rows, self.right)}"


@record
class Text:
    """A paragraph; ``style`` is how a terminal shows it: ``dim``, ``bold green``."""

    words: str
    style: str = ""

    def text(self) -> str:
        """Return the words."""
        return printable_lines(self.words)

    def markdown(self) -> str:
        """Return the words."""
        return "\n".join(map(_escape, self.words.split("\n")))


Section: TypeAlias = Pairs | Table | Text


class Report:
    """A report. A dataclass that derives from it returns its ``sections``, and ``values`` that are not its fields."""

    def sections(self) -> Iterable[Section]:
        raise NotImplementedError

    def values(self) -> Mapping[str, Any]:
        """Return the values of the report, for JSON: by default the fields."""
        return field_values(self)

    def as_dict(self) -> dict[str, Any]:
        """Return the values in types of JSON."""
        return json_value(self.values())

    def to_markdown(self) -> str:
        """Return the sections in Markdown."""
        return "\n\n".join(section.markdown() for section in self.sections()) + "\n"

    def __str__(self) -> str:
        return "\n\n".join(section.text() for section in self.sections())


def field_values(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def json_text(value: Mapping[str, Any]) -> str:
    """Return JSON in printable characters only; others are escaped."""
    text = json.dumps(json_value(value), indent=2, ensure_ascii=False, allow_nan=False)
    return "\n".join(line if line.isprintable() else _as_escapes(line) for line in text.split("\n"))


def parse_json(text: str | bytes) -> Any:
    """Parse JSON. Raises ValueError: not JSON, which has no NaN or Infinity either; RecursionError: too deep."""
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def json_value(value: Any) -> Any:
    """Convert a value to types of JSON.

    An object becomes its ``as_dict``, a dataclass its fields, a time its ISO form; a float that is infinite or NaN, and
    any other type that JSON lacks, becomes text.
    """
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if value is None or isinstance(value, (str, int)):
        return value
    if hasattr(value, "as_dict"):
        return json_value(value.as_dict())
    if isinstance(value, Mapping):
        return {str(name): json_value(item) for name, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (Sequence, Iterator)):
        return [json_value(item) for item in cast("Iterable[Any]", value)]
    if is_dataclass(value):
        return json_value(field_values(value))
    return value.isoformat() if isinstance(value, datetime) else str(value)


def duration(seconds: float) -> str:
    """Return a time with the unit that suits it: 45 ns, 12.3 us, 4.56 ms, 7.89 s."""
    if 0 < seconds < 1e-6:
        return f"{seconds * 1e9:.0f} ns"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def byte_size(count: int) -> str:
    """Return bytes with the unit that suits them."""
    if count < 1 << 10:
        return f"{count} B"
    return f"{count / (1 << 10):.1f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"


def _align(rows: Sequence[Sequence[str]], right: Sequence[int]) -> str:
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = [
        [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ]
        for row in cells
    ]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> str:
    rule = ["--:" if column in right else "---" for column in range(len(columns))]
    lines = [[_escape(name) for name in columns], rule, *([_escape(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escape(text: str) -> str:
    """Escape markup in text."""
    return "".join(f"\\{letter}" if letter in r"\`*_[]<>|#" else letter for letter in printable(text))


def _as_escapes(line: str) -> str:
    return "".join(
        character if printable(character) == character else json.dumps(character)[1:-1] for character in line
    )
