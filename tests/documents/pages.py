"""The documents: their code spans, code blocks, links and headings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path

from tests.sources import ROOT

NAMES = ("*.md", "docs/*.md", "docs/decisions/*.md", "bench/*.md", "demos/*.md", "demos/*/*.md")
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Page:
    """A Markdown file of the repository."""

    name: str

    @cached_property
    def text(self) -> str:
        return (ROOT / self.name).read_text("utf-8")

    @cached_property
    def prose(self) -> str:
        """The text without its code blocks."""
        return FENCE.sub("", self.text)

    @property
    def folder(self) -> Path:
        """The folder that its relative links start from."""
        return (ROOT / self.name).parent

    def blocks(self, *languages: str) -> list[str]:
        """The code blocks in these languages."""
        return [code for language, code in FENCE.findall(self.text) if language in languages]

    def spans(self) -> list[str]:
        """The pieces of code in its lines."""
        return SPAN.findall(self.prose)

    def links(self) -> Iterator[str]:
        """The target of the link inside the repository."""
        return (link for link in LINK.findall(self.prose) if "://" not in link)

    def anchors(self) -> set[str]:
        """The anchors that links may name after #, as GitHub derives them from headings."""
        headings = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def pages() -> dict[str, Page]:
    """The documents by their paths."""
    paths = sorted({path.relative_to(ROOT).as_posix() for name in NAMES for path in ROOT.glob(name)})
    return {name: Page(name) for name in paths}


def expand_braces(path: str) -> list[str]:
    """``a/{b,c}.py`` is two paths."""
    parts = re.split(r"\{([^}]*)\}", path)
    choices = [part.split(",") if place % 2 else [part] for place, part in enumerate(parts)]
    return ["".join(choice) for choice in product(*choices)]


def package_rows() -> Iterator[tuple[list[str], str]]:
    """The paths and the contents in each row of the table of packages."""
    table = pages()["ARCHITECTURE.md"].text.partition("## Packages")[2].partition("\n## ")[0]
    for row in re.findall(r"^\| (`.*`) \| (.*) \|$", table, re.MULTILINE):
        yield [path for span in SPAN.findall(row[0]) for path in expand_braces(span)], row[1]
