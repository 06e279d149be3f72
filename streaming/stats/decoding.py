"""Decode JSON values to frozen dataclasses, with every field checked."""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from pulse.support.value_types import quote
from pulse.support.wording import count_of

Decoder = Callable[[Any], Any]
MAX_NUMBER = 1 << 63
"""Numbers from here on are refused: they do not fit into 64 bits."""


class MisfitError(Exception):
    """A value is not as expected; ``path`` leads to it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = ".".join(self.path)
        return f"{where}: {self.args[0]}" if where else str(self.args[0])


@cache
def decoder(type_: Any) -> Decoder:
    """Return the function that decodes a JSON value to ``type_``, or raises MisfitError.

    type_  a dataclass, ``tuple[X, ...]``, ``tuple[X, Y]``, ``dict[str, X]``, ``X | None``, float, str, int (from 0 to
           2**63). Fields unknown to a dataclass are ignored, so that a later version may add some
    """
    if type_ in _SIMPLE:
        return _SIMPLE[type_]
    if is_dataclass(type_):
        return _record(cast(type, type_))
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is UnionType and arguments[1:] == (NoneType,):
        decode_part = decoder(arguments[0])
        return lambda value: None if value is None else decode_part(value)
    if origin is tuple:
        return _sequence_decoder(arguments)
    if origin is dict:
        return _mapping_decoder(decoder(arguments[1]))
    raise TypeError(f"no decoder for {type_}")


def _record(record_class: type) -> Decoder:
    hints = get_type_hints(record_class)
    parts = [
        (
            field.name,
            decoder(hints[field.name]),
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(record_class)
    ]

    def decode(value: Any) -> Any:
        members = _require_type(dict, value, "an object")
        fields: dict[str, Any] = {}
        for name, decode_part, required in parts:
            if name in members:
                fields[name] = _decode_member(name, decode_part, members[name])
            elif required:
                raise MisfitError(f"{name} is missing")
        return record_class(**fields)

    return decode


def _sequence_decoder(arguments: tuple[Any, ...]) -> Decoder:
    if arguments[1:] == (Ellipsis,):
        decode_part = decoder(arguments[0])
        return lambda value: tuple(
            _decode_member(str(index), decode_part, element)
            for index, element in enumerate(_require_type(list, value, "a list"))
        )
    decoders = [decoder(argument) for argument in arguments]

    def decode(value: Any) -> Any:
        values = _require_type(list, value, "a list")
        if len(values) != len(decoders):
            raise MisfitError(f"{count_of(len(values), 'value')} instead of {len(decoders)}")
        return tuple(
            _decode_member(str(index), decode_part, element)
            for index, (decode_part, element) in enumerate(zip(decoders, values))
        )

    return decode


def _mapping_decoder(decode_part: Decoder) -> Decoder:
    return lambda value: {
        name: _decode_member(name, decode_part, member)
        for name, member in _require_type(dict, value, "an object").items()
    }


def _decode_member(name: str, decode_part: Decoder, value: Any) -> Any:
    try:
        return decode_part(value)
    except MisfitError as misfit:
        misfit.path = (name, *misfit.path)
        raise


def _require_type(type_: type, value: Any, words: str) -> Any:
    if not isinstance(value, type_):
        raise MisfitError(f"{quote(value)} is not {words}")
    return value


def _decode_count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < MAX_NUMBER:
        raise MisfitError(f"{quote(value)} is not a count")
    return value


def _decode_number(value: Any) -> float:
    if type(value) is int and -MAX_NUMBER <= value < MAX_NUMBER:
        return float(value)
    if type(value) is not float or not isfinite(value):
        raise MisfitError(f"{quote(value)} is not a finite number")
    return value


_SIMPLE: dict[Any, Decoder] = {
    int: _decode_count,
    float: _decode_number,
    str: lambda value: _require_type(str, value, "a string"),
}
