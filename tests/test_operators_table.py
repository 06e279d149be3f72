"""docs/operators.md says what the code does."""

from tests.operators_table import DOCUMENT, table


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == table(), "run: python -m tests.operators_table"
