"""Dataclasses, nearly all frozen, that are fast to declare.

``dataclasses`` writes and compiles six methods for each frozen class when its module is imported, half a millisecond of
them, used or not. Here only ``__init__`` is written, on first use, and compiled once for all classes whose fields
differ only in name. Otherwise they are dataclasses: ``fields``, ``replace``, ``asdict``, ``copy`` and ``pickle``
work.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(
    *, eq: bool = True, kw_only: bool = False, frozen: bool = True
) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    cls: type[T] | None = None, /, *, eq: bool = True, kw_only: bool = False, frozen: bool = True
) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class a dataclass, as ``dataclass(frozen=True)`` does; methods of its own stay.

    eq       compare and hash by value; by identity otherwise
    kw_only  all fields are given by name
    frozen   whether fields keep their values; what is compared by values that may change has no hash
    """

    def declare(cls: type[T]) -> type[T]:
        own_names = set(vars(cls))
        dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        if "__eq__" in own_names and getattr(cls, "__hash__", None) is None:
            own_names.discard("__hash__")
        methods = {
            "__init__": _UnwrittenInit(cls),
            "__repr__": _repr,
            **(_FROZEN if frozen else {}),
            **(_comparison(cls, frozen) if eq else {}),
        }
        for name, method in methods.items():
            if name not in own_names:
                setattr(cls, name, method)
        return cls

    return declare if cls is None else declare(cls)


class _UnwrittenInit:
    """A placeholder that replaces itself with ``__init__`` on first use; several threads may do so at once."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> Any:
        cls = self._cls
        method = _init(cls)
        method.__qualname__, method.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        method.__annotations__ = {member.name: member.type for member in fields(cls)} | {"return": None}
        setattr(cls, method.__name__, method)
        return method.__get__(instance, owner)


def _init(cls: type) -> FunctionType:
    own_fields: tuple[Field[Any], ...] = fields(cls)
    ordered = [
        *(member for member in own_fields if not member.kw_only),
        *(member for member in own_fields if member.kw_only),
    ]
    factories = tuple(member.default_factory is not MISSING for member in ordered)
    positional = sum(not member.kw_only for member in ordered)
    code = _init_code(factories, positional, hasattr(cls, "__post_init__"))
    names = {f"_{index}": member.name for index, member in enumerate(ordered)}
    code = code.replace(
        co_varnames=tuple(names.get(name, name) for name in code.co_varnames),
        co_consts=tuple(names.get(const, const) for const in code.co_consts),
    )
    namespace: dict[str, Any] = {"set_field": object.__setattr__, "not_given": _NOT_GIVEN}
    namespace |= {f"default_{index}": member.default_factory for index, member in enumerate(ordered)}
    method = FunctionType(code, namespace)
    defaults = {member.name: _default(member) for member in ordered if _default(member) is not MISSING}
    named = [member.name for member in ordered[positional:]]
    method.__defaults__ = tuple(value for name, value in defaults.items() if name not in named)
    method.__kwdefaults__ = {name: defaults[name] for name in named if name in defaults}
    return method


def _default(member: Field[Any]) -> Any:
    return member.default if member.default_factory is MISSING else _NOT_GIVEN


@cache
def _init_code(factories: tuple[bool, ...], positional: int, post: bool) -> CodeType:
    """Return the code of ``__init__`` for fields ``_0``, ``_1`` …, keyword-only fields last.

    factories   whether a function makes a field's default, one entry for each field
    positional  the number of positional parameters
    post        whether ``__post_init__`` is called
    """
    names = [f"_{index}" for index in range(len(factories))]
    stars = ["*"] if positional < len(names) else []
    lines = [f"def __init__({', '.join(['self', *names[:positional], *stars, *names[positional:]])}):"]
    for name, factory in zip(names, factories):
        value = f"default{name}() if {name} is not_given else {name}" if factory else name
        lines.append(f" set_field(self, {name!r}, {value})")
    lines.append(" self.__post_init__()" if post else " pass")
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)
    return namespace["__init__"].__code__


def _comparison(cls: type, frozen: bool) -> dict[str, Callable[..., Any] | None]:
    """Return ``__eq__`` and ``__hash__`` of the values of all fields; no ``__hash__`` if they may change."""
    names = [member.name for member in fields(cls)]
    get: Callable[[Any], Any] = attrgetter(*names) if names else lambda of: ()

    def equal(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return (get(self),) == (get(other),)

    def hash_fields(self: Any) -> int:
        return hash(get(self))

    return {"__eq__": equal, "__hash__": hash_fields if frozen else None}


@recursive_repr()
def _repr(self: Any) -> str:
    texts = (f"{member.name}={getattr(self, member.name)!r}" for member in fields(self) if member.repr)
    return f"{type(self).__qualname__}({', '.join(texts)})"


def _setattr(self: Any, name: str, value: Any) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delattr(self: Any, name: str) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(self: Any, name: str) -> bool:
    """Return whether an attribute is frozen; subclasses that are not dataclasses may add attributes."""
    return "__dataclass_fields__" in self.__class__.__dict__ or name in self.__dataclass_fields__


_NOT_GIVEN = object()
_FROZEN: dict[str, Any] = {"__setattr__": _setattr, "__delattr__": _delattr}
