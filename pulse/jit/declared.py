"""Declarations of the functions that compiled code may call; numba learns of them when something is compiled.

So a process that compiles nothing imports no numba. ``codegen`` takes from ``UNREGISTERED``.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar

from pulse.jit.fields import Fields
from pulse.jit.instruction import RowFields
from pulse.support.record import record

Function: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=Function)
Element: TypeAlias = Literal["f32", "f64"]
Argument: TypeAlias = "type[RowFields] | Literal['i64', 'f32*']"
"""Of a function: a part of a row, a number, a pointer to f32."""


@record
class Helper:
    """Plain Python that numba compiles too, with these options."""

    function: Function
    options: Mapping[str, Any]


@record
class Dispatcher:
    """A switch over functions of elements; see ``dispatch``."""

    apply: Function
    rows: Sequence[tuple[Function, bool]]
    element: Element


ONLY: ContextVar[frozenset[int] | None] = ContextVar("ONLY", default=None)
"""The rows of dispatchers that are compiled, where code is for one program; None: all."""


@record
class Outlined:
    """A helper without a result that stays a function of its own."""

    function: Function
    takes: Sequence[Argument]


CType: TypeAlias = Literal["i32", "i64", "u64", "address"]


@record
class CSignature:
    """What a C function gives, if anything, and takes."""

    gives: CType | None
    takes: tuple[CType, ...]


@record
class CFunction:
    """A C function, by name, or at the address that is the first argument of ``call``."""

    call: Function
    signature: CSignature
    name: str | None


@record
class StructAt:
    """A function of an address that gives the struct of this kind there."""

    function: Function
    kind: type[Fields]


UNREGISTERED: list[Helper | Dispatcher | Outlined | CFunction | StructAt] = []


def helper(function: F, **options: Any) -> F:
    """Let kernels call a function of plain Python."""
    UNREGISTERED.append(Helper(function, options))
    return function


def refuse() -> NoReturn:
    """What a function without a meaning in Python does: a module ``…_codegen`` says what it is in compiled code."""
    raise NotImplementedError("only compiled code can call this")
