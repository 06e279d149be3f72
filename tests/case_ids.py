"""Ids of the cases of tests: the text of each value says what it is."""

import enum
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePath

import numpy as np
import pytest

MAX_CHARACTERS = 100
"""Longer texts are no ids; pytest would give them a number."""


def id_of(value: object, name: str) -> str:
    """The text of a parameter's value in the id of a case.

    Raises CollectError: the value has no short text, so its case needs an id
    """
    text = text_of(value)
    if "<lambda>" in text or " object at 0x" in text or len(text) > MAX_CHARACTERS:
        raise pytest.Collector.CollectError(f"{name} = {text:.200} is no short text: give its case an id")
    return text


def text_of(value: object) -> str:
    """Names, numbers and text as they are, containers and calls by what is in them, arrays by their type and sizes."""
    match value:
        case str():
            return value.encode("unicode_escape").decode() or "''"
        case bytes():
            return text_of(value.decode("latin-1"))
        case re.Pattern():
            return text_of(value.pattern)
        case None | float() | int() | complex() | enum.Enum() | PurePath():
            return str(value)
        case np.ndarray() | object(dtype=_, shape=tuple()):
            return f"{value.dtype}{text_of([*value.shape])}"
        case tuple():
            return f"({','.join(map(text_of, value))})"
        case list():
            return f"[{','.join(map(text_of, value))}]"
        case set() | frozenset():
            return f"{{{','.join(sorted(map(text_of, value)))}}}"
        case Mapping():
            return f"{{{','.join(pair_texts(value))}}}"
        case partial():
            return (
                f"{text_of(value.func)}({','.join([*map(text_of, value.args), *pair_texts(value.keywords)])})"
            )
        case object(is_floating_point=bool(), itemsize=int()):
            return str(value)  # a type of numbers of torch, which is not imported for this
        case _ if callable(value):
            return getattr(value, "__name__", object.__repr__(value))
        case _:
            return "..." if value is ... else object.__repr__(value)


def pair_texts(pairs: Mapping[object, object]) -> Iterator[str]:
    """Yield ``key=value`` of each pair."""
    return (f"{text_of(key)}={text_of(value)}" for key, value in pairs.items())
