"""Untrusted text, escaped so that it can be printed."""

import unicodedata

LONGEST_TITLE = 100


def printable(text: str) -> str:
    """The text with Python escapes for everything that controls a terminal, hides text or reverses it.

    That is escape sequences, line breaks and other control characters, marks of direction, characters of no width and
    halves of surrogate pairs. Letters of all scripts stay. Done again, it changes nothing.
    """
    if text.isprintable():
        return text
    return "".join(letter if _is_harmless(letter) else _escape(letter) for letter in text)


def is_title(text: str) -> bool:
    """Whether a text may be what a model is called: a line that can be part of a file's name."""
    return (
        bool(text.strip())
        and len(text) <= LONGEST_TITLE
        and printable(text) == text
        and not set("/\\") & set(text)
    )


def printable_lines(text: str) -> str:
    """As ``printable``, but line breaks stay."""
    return "\n".join(map(printable, text.split("\n")))


def _is_harmless(letter: str) -> bool:
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
