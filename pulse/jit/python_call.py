"""Call C functions of int64 from Python, through a builtin function of a few generated instructions.

ctypes and cffi do the same through libffi and take three times as long.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeAlias

from pulse.support.record import record

METH_FASTCALL = 0x80

INTERPRETER_FUNCTIONS = (
    "PyLong_AsLongLong",
    "PyLong_FromLongLong",
    "PyErr_Occurred",
    "PyErr_BadArgument",
    "Py_IncRef",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)
"""The functions of the interpreter's stable interface that the code calls."""


CallResult: TypeAlias = Literal["int", "object"] | None
"""What Python gets: an int; the object whose address the function returns, with a reference to it; or None."""


def address_of_function(name: str) -> int:
    """Return the address of a function of the interpreter."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def addresses() -> dict[str, int]:
    """Return the addresses of the functions that the code calls."""
    return {name: address_of_function(name) for name in INTERPRETER_FUNCTIONS}


@record
class PythonCall:
    """How Python calls a C function.

    arguments  the number of arguments
    returns    the kind of the result
    keeps_gil  whether the GIL is kept during the call
    objects    the positions of arguments that may be any object, passed by address; the others are ints
    bound      whether each Python function has its own first argument, as in ``builtin``; it must return a value
    """

    arguments: int
    returns: CallResult
    keeps_gil: bool
    objects: tuple[int, ...] = ()
    bound: bool = False


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@cache
def _definition(name: str, address: int) -> _MethodDef:
    """Return the definition of a function. It stays: the interpreter reads it as long as the function lives."""
    return _MethodDef(name.encode(), address, METH_FASTCALL, None)


def builtin(name: str, address: int, first: int | None = None, kept: object = None) -> Callable[..., Any]:
    """Return the Python function whose code, from ``codegen.python_call``, is at the address.

    first  the first argument of a bound function, which callers leave out
    kept   an object that lives as long as the function
    """
    create = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    definition = ctypes.addressof(_definition(name, address))
    return create(("PyCFunction_NewEx", ctypes.pythonapi))(definition, first, kept)
