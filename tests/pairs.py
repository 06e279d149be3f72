"""The share of a table of cases that the default suite tries."""

from collections.abc import Iterator, Sequence
from typing import Any


def pairs(rows: Sequence[str], columns: Sequence[Any], half: bool) -> Iterator[tuple[str, Any]]:
    """Yield each row with each column, or with every second one in turn."""
    for number, row in enumerate(rows):
        for column in columns[number % 2 :: 2] if half else columns:
            yield row, column
