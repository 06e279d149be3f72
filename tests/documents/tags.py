"""A parser of the tags in HTML pages."""

from html.parser import HTMLParser
from typing import TypeAlias

Tag: TypeAlias = tuple[str, dict[str, str]]
"""Name and attributes of a tag."""


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[Tag] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Append the tag to ``tags``."""
        self.tags.append((tag, {name: value or "" for name, value in attrs}))


def tags_of(text: str) -> list[Tag]:
    """All tags of a page, in their order."""
    parser = _Tags()
    parser.feed(text)
    return parser.tags
