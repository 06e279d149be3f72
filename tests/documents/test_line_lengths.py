"""The lines of the documents that people write are short, except rows of tables and HTML."""

import re

from tests.documents.pages import pages

MAX_COLUMNS = 128
WRITTEN_BY_SCRIPTS = {
    *("docs/instructions.md", "docs/models.md", "docs/node_cases.md", "docs/versions.md"),
    *(
        "docs/operators.md",
        "docs/nnef_operators.md",
        "docs/tensorflow_operators.md",
        "docs/tflite_operators.md",
    ),
    *("docs/performance.md", "docs/performance_zen4.md", "docs/performance_zen3.md", "docs/pytorch_codes.md"),
}
"""Pages with lines that a program has written: tables of the code, and reports of benches."""
NO_PROSE = re.compile(r" *[|<]")
"""Where rows of tables and tags of HTML begin."""


def test_lines_of_prose_are_short() -> None:
    assert set(pages()) > WRITTEN_BY_SCRIPTS
    lines = [
        (name, line)
        for name, page in pages().items()
        if name not in WRITTEN_BY_SCRIPTS
        for line in page.prose.splitlines()
    ]
    assert len(lines) > 2000
    assert [
        (name, line) for name, line in lines if len(line) > MAX_COLUMNS and not NO_PROSE.match(line)
    ] == []
