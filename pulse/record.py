"""Frozen dataclasses that are declared quickly.

``dataclasses`` writes and compiles six methods for each frozen class when its module is imported, half a millisecond of
them, used or not. Here the methods are written when they are first asked for. In all else they are dataclasses:
``fields``, ``replace``, ``asdict``, ``copy`` and ``pickle`` take them.
"""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from reprlib import recursive_repr
from types import FunctionType
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(*, eq: bool = True, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    cls: type[T] | None = None, /, *, eq: bool = True, kw_only: bool = False
) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class a frozen dataclass, as ``dataclass(frozen=True)`` does; methods of its own stay.

    eq       compare and hash by value; by identity otherwise
    kw_only  all fields are given by name
    """

    def declare(cls: type[T]) -> type[T]:
        own = set(vars(cls))
        dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        written = ["__init__", *(["__eq__", "__hash__"] if eq else [])]
        if "__eq__" in own and getattr(cls, "__hash__", None) is None:
            own.discard("__hash__")
        for name in (name for name in written if name not in own):
            setattr(cls, name, _Unwritten(cls, name))
        for name, method in _SHARED.items():
            if name not in own:
                setattr(cls, name, method)
        return cls

    return declare if cls is None else declare(cls)


class _Unwritten:
    """A method until it is first asked for: it is written and takes this place. Several threads may do so at once."""

    def __init__(self, cls: type, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, instance: object, owner: type) -> Any:
        method = _written(self._cls, self._name)
        setattr(self._cls, self._name, method)
        return method.__get__(instance, owner)


def _written(cls: type, name: str) -> FunctionType:
    """A method in the source of Python, compiled."""
    known: dict[str, Any] = {"set_field": object.__setattr__, "not_given": _NOT_GIVEN}
    exec("\n".join(_SOURCES[name](cls, known)), known)
    method: FunctionType = known[name]
    method.__qualname__, method.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
    if name == "__init__":
        method.__annotations__ = {each.name: each.type for each in fields(cls)} | {"return": None}
    return method


def _init(cls: type, known: dict[str, Any]) -> Iterator[str]:
    given = fields(cls)
    parameters = [_parameter(each, known) for each in given if not each.kw_only]
    if named := [_parameter(each, known) for each in given if each.kw_only]:
        parameters += ["*", *named]
    yield f"def __init__({', '.join(['self', *parameters])}):"
    for each in given:
        value = each.name
        if each.default_factory is not MISSING:
            value = f"default_{value}() if {value} is not_given else {value}"
        yield f" set_field(self, {each.name!r}, {value})"
    if hasattr(cls, "__post_init__"):
        yield " self.__post_init__()"
    elif not given:
        yield " pass"


def _parameter(each: Field[Any], known: dict[str, Any]) -> str:
    default = f"default_{each.name}"
    if each.default_factory is not MISSING:
        known[default] = each.default_factory
        return f"{each.name}=not_given"
    if each.default is MISSING:
        return each.name
    known[default] = each.default
    return f"{each.name}={default}"


def _eq(cls: type, known: dict[str, Any]) -> Iterator[str]:
    yield "def __eq__(self, other):"
    yield " if other.__class__ is not self.__class__:"
    yield "  return NotImplemented"
    yield f" return {_values('self', cls)} == {_values('other', cls)}"


def _hash(cls: type, known: dict[str, Any]) -> Iterator[str]:
    yield "def __hash__(self):"
    yield f" return hash({_values('self', cls)})"


def _values(owner: str, cls: type) -> str:
    return f"({''.join(f'{owner}.{each.name}, ' for each in fields(cls))})"


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _setattr(self: Any, name: str, value: Any) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delattr(self: Any, name: str) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(self: Any, name: str) -> bool:
    """Subclasses that are no dataclasses may add attributes."""
    return "__dataclass_fields__" in self.__class__.__dict__ or name in self.__dataclass_fields__


_NOT_GIVEN = object()
_SOURCES: dict[str, Callable[[type, dict[str, Any]], Iterator[str]]] = {
    "__init__": _init,
    "__eq__": _eq,
    "__hash__": _hash,
}
_SHARED: dict[str, Any] = {"__repr__": _repr, "__setattr__": _setattr, "__delattr__": _delattr}
