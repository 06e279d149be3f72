"""Tests that the documents name exist."""

import ast
import re

import pytest

from tests.documents.pages import Page, pages
from tests.shared import shared_path
from tests.sources import ROOT

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
SESSION_ROWS = {*range(1, 40)} - {12, 15, 29}
"""The rows of the list of TensorFlow's functions, ``tensorflow/ROWS.md`` of the shared folder, which skips three."""


@pytest.mark.parametrize(
    "page", [page for page in pages().values() if NAMED.search(page.text)], ids=lambda page: page.name
)
def test_tests_that_pages_name_exist(page: Page) -> None:
    for path, name in NAMED.findall(page.text):
        defined: set[str] = set()
        for statement in ast.parse((ROOT / path).read_text("utf-8")).body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                defined.add(statement.name)
            if isinstance(statement, ast.Assign):
                defined |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
        assert name in defined, f"{path}::{name}"
        assert name.lower().startswith("test"), f"{path}::{name}"


def row_numbers(text: str) -> list[int]:
    """The numbers of the rows that a text names: ``F7 to F9`` are three."""
    ranges = re.findall(r"\bF(\d+)(?: to F(\d+))?", text)
    return [number for first, last in ranges for number in range(int(first), int(last or first) + 1)]


def test_the_rows_of_sessions_are_all_there() -> None:
    """Each row of sessions has a line of the table, or is among the limits and named above the table."""
    text = pages()["docs/tensorflow.md"].text
    listed = [int(number) for number in re.findall(r"^\| F(\d+) \|", text, re.MULTILINE)]
    limits = row_numbers(text[text.index("## Limits") :])
    assert sorted([*listed, *limits]) == sorted(SESSION_ROWS)
    assert listed == sorted(listed)
    introduction = text[text.index("## Feature by feature") : text.index("| F1 |")]
    assert row_numbers(introduction) == [*sorted({*range(1, 40)} - SESSION_ROWS), *sorted(limits)]


def test_the_list_of_sessions_has_these_rows() -> None:
    rows = re.findall(r"^\| F(\d+) \|", shared_path("tensorflow/ROWS.md").read_text("utf-8"), re.MULTILINE)
    assert {*map(int, rows)} == SESSION_ROWS
