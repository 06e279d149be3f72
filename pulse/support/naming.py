"""Names that are free, and errors of names that are unknown."""

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches

MAX_LISTED_NAMES = 20
"""Maximum number of names that a message lists; it counts the others."""


def free_name(name: str, is_taken: Callable[[str], bool], separator: str = ".", first: int = 1) -> str:
    """Return ``name``; if it is taken, with the first free number, counted from ``first``."""
    result, number = name, first
    while is_taken(result):
        result, number = f"{name}{separator}{number}", number + 1
    return result


def unknown_name(noun: str, name: object, names: Iterable[str]) -> str:
    """Return the text of an error: a name is unknown, the most similar name if there is one, and all the names."""
    known = list(names)
    matches = get_close_matches(str(name), known, 1)
    suggestion = f" (did you mean {matches[0]}?)" if matches else ""
    more = f" and {len(known) - MAX_LISTED_NAMES} more" if len(known) > MAX_LISTED_NAMES else ""
    choices = f"choose one of {', '.join(known[:MAX_LISTED_NAMES])}{more}" if known else "there is none"
    return f"unknown {noun} {name!r}{suggestion}; {choices}"


def require_name(
    noun: str, name: str, names: Collection[str], error: Callable[[str], Exception], location: str = ""
) -> str:
    """Return a name that is among ``names``; if it is not, raise ``error``, whose text begins with the location."""
    if name not in names:
        raise error(f"{location}{': ' if location else ''}{unknown_name(noun, name, names)}")
    return name
