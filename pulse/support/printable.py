"""Untrusted text, escaped so that it can be printed."""

import unicodedata

MAX_TITLE_LENGTH = 100
"""A longer text is not used as a title."""


def printable(text: str) -> str:
    """Escape, as Python does, all characters that control a terminal, hide text or reverse it.

    These are control characters, including escape and line breaks, marks of direction, characters of no width and
    halves of surrogate pairs. Letters of all scripts are unchanged. The function is idempotent.
    """
    if text.isprintable():
        return text
    return "".join(letter if _is_harmless(letter) else _escape(letter) for letter in text)


def is_title(text: str) -> bool:
    """Return whether a text can be the title of a model: a line that can be part of a file's name."""
    return (
        bool(text.strip())
        and len(text) <= MAX_TITLE_LENGTH
        and printable(text) == text
        and not set("/\\") & set(text)
    )


def printable_lines(text: str) -> str:
    """Escape as ``printable`` does, except for line breaks."""
    return "\n".join(map(printable, text.split("\n")))


def _is_harmless(letter: str) -> bool:
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
