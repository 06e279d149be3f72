"""The tags of HTML pages."""

from html.parser import HTMLParser
from typing import TypeAlias

Tag: TypeAlias = tuple[str, dict[str, str]]
"""Its name and its attributes."""


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[Tag] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep it."""
        self.tags.append((tag, {name: value or "" for name, value in attrs}))


def tags_of(text: str) -> list[Tag]:
    """All tags of a page, in their order."""
    parser = _Tags()
    parser.feed(text)
    return parser.tags
