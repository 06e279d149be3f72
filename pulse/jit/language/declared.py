"""Declarations of the functions that compiled code may call; they are registered when something is compiled.

So a process that compiles nothing does not import numba. ``codegen`` registers those in ``UNREGISTERED``.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar

from pulse.jit.rows.fields import Fields
from pulse.support.record import record

PythonFunction: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=PythonFunction)
FloatType: TypeAlias = Literal["f32", "f64"]


@record
class Helper:
    """A plain Python function that numba compiles too, with these options."""

    function: PythonFunction
    options: Mapping[str, Any]


@record
class Dispatcher:
    """A switch over functions of elements; see ``dispatch``."""

    apply: PythonFunction
    rows: Sequence[tuple[PythonFunction, bool]]
    element: FloatType


@record
class Chooser:
    """A switch over functions of values; see ``dispatch``."""

    choose: PythonFunction
    functions: Sequence[PythonFunction]


DISPATCHED_ROWS: ContextVar[frozenset[int] | None] = ContextVar("DISPATCHED_ROWS", default=None)
"""The rows of dispatchers to compile, if code is for one program; None: all."""


@record
class Outlined:
    """A helper without a result that is not inlined."""

    function: PythonFunction


CType: TypeAlias = Literal["i32", "i64", "u64", "address"]


@record
class CSignature:
    """The result type, if any, and the argument types of a C function."""

    returns: CType | None
    takes: tuple[CType, ...]


@record
class CFunction:
    """A C function by name, or at the address that is the first argument of ``call``."""

    call: PythonFunction
    signature: CSignature
    name: str | None


@record
class StructAt:
    """A function from an address to the struct of this kind there."""

    function: PythonFunction
    kind: type[Fields]


UNREGISTERED: list[Helper | Dispatcher | Chooser | Outlined | CFunction | StructAt] = []


def helper(function: F, **options: Any) -> F:
    """Make a plain Python function callable from kernels."""
    UNREGISTERED.append(Helper(function, options))
    return function


def refuse() -> NoReturn:
    """Raise, as the body of a function that only works in compiled code; a module of ``codegen`` defines it there."""
    raise NotImplementedError("only compiled code can call this")
