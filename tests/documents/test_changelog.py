"""The newest section of the changelog has the package's version."""

import re

import pulse
from tests.documents.pages import pages

SECTION = re.compile(r"^## (\d+\.\d+\.\d+) \((unreleased|\d{4}-\d{2}-\d{2})\)$", re.MULTILINE)


def test_the_newest_section_is_of_this_version() -> None:
    text = pages()["CHANGELOG.md"].text
    sections = SECTION.findall(text)
    assert len(sections) == text.count("\n## ")
    assert sections[0][0] == pulse.__version__
