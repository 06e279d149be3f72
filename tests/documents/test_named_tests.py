"""Tests that the documents name exist."""

import ast
import re

import pytest

from tests.documents.pages import Page, pages
from tests.sources import ROOT

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


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


def test_the_rows_of_sessions_are_all_there() -> None:
    """Each row of sessions has a line of the table or is among the limits."""
    text = pages()["docs/tensorflow.md"].text
    listed = [int(number) for number in re.findall(r"^\| F(\d+) \|", text, re.MULTILINE)]
    assert listed == sorted(set(listed))
    assert len(listed) >= 29
    limits = text[text.index("## Limits") :]
    assert all(f"F{number}" in limits for number in (7, 9, 23, 30, 39))
