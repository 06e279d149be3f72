"""Names that are free, and names that the user may have meant."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches


def free_name(name: str, is_taken: Callable[[str], bool], separator: str = ".", first: int = 1) -> str:
    """Return ``name``; if it is taken, with the first free number, counted from ``first``."""
    result, number = name, first
    while is_taken(result):
        result, number = f"{name}{separator}{number}", number + 1
    return result


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return a question for an error message: whether the user meant the most similar name; empty if none is."""
    matches = get_close_matches(name, list(names), 1)
    return f" (did you mean {matches[0]}?)" if matches else ""
