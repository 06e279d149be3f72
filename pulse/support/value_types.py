"""Checks of values from TOML and JSON; the error for a wrong one states in one line what is allowed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, cast, get_args, get_origin

from pulse.errors import LoadError
from pulse.support.naming import require_name

TomlValue: TypeAlias = object
"""A value of TOML: text, number, boolean, time, list or table."""
TomlTable: TypeAlias = Mapping[str, TomlValue]
MAX_QUOTED_LENGTH = 40
"""Maximum number of characters of a value that messages quote."""
_NAMES = {str: "text", int: "an integer", float: "a number", bool: "true or false"}


def fits(value: TomlValue, hint: object) -> bool:
    """Return whether a value is of a type: a scalar, ``Literal``, a list (a Sequence or tuple), a table, or a union."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin in (Sequence, tuple):
        return isinstance(value, list) and all(
            fits(item, parts[0]) for item in cast("list[TomlValue]", value)
        )
    if origin is Mapping:
        return isinstance(value, dict) and all(
            fits(item, parts[1]) for item in cast("dict[str, TomlValue]", value).values()
        )
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(hint, type) and isinstance(value, hint)


def describe_type(hint: object) -> str:
    """Return the values that a type allows, in words."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        types = [part for part in parts if part is not NoneType and get_origin(part) is not PathLike]
        return " or ".join(dict.fromkeys(map(describe_type, types)))
    if origin is Literal:
        return " or ".join(repr(part) for part in parts)
    if origin in (Sequence, tuple):
        return f"a list, each {describe_type(parts[0])}"
    if origin is Mapping:
        return "a table" if parts[1] is object else f"a table, each value {describe_type(parts[1])}"
    return _NAMES[cast("type", hint)]


def get_value(table: TomlTable, key: str, hint: object, location: str, example: str) -> Any:
    """Return the value of a key, or None if missing. Raises LoadError: it has another type."""
    value = table.get(key)
    if value is not None:
        require_type(key, value, hint, location, example)
    return value


def require_type(key: str, value: TomlValue, hint: object, location: str, example: str = "") -> None:
    """Raise LoadError if a value has another type."""
    if not fits(value, hint):
        such_as = f", such as {key} = {example}" if example else ""
        raise LoadError(f"{location}: {key} = {quote(value)} must be {describe_type(hint)}{such_as}")


def quote(value: TomlValue) -> str:
    """Return a value for a message, short."""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= MAX_QUOTED_LENGTH else f"{text[:MAX_QUOTED_LENGTH]}…"


def require_known(keys: Iterable[str], allowed: Collection[str], location: str, subject: str) -> None:
    """Raise LoadError for an unknown key, with the nearest known one."""
    for key in keys:
        require_name(subject, key, allowed, LoadError, location)
