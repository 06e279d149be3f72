# pyright: basic, reportArgumentType=false
"""Call C functions of int64 from Python, through a builtin function of a few generated instructions.

ctypes and cffi do the same through libffi and take three times as long.
"""

import ctypes
from collections.abc import Callable

from pulse.support.record import record

METH_FASTCALL = 0x80

NEEDS = (
    "PyLong_AsLongLong",
    "PyLong_FromLongLong",
    "PyErr_Occurred",
    "PyErr_BadArgument",
    "Py_IncRef",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)
"""The functions of the interpreter's stable interface that the code calls."""


def addresses() -> dict[str, int]:
    """Return the addresses of the functions of the interpreter that the code needs."""
    return {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in NEEDS}


@record
class PythonCall:
    """How Python calls a C function.

    arguments  the number of arguments
    gives_int  whether the result is an int; else None
    keeps_gil  whether the GIL is kept during the call
    objects    the positions of arguments that may be any object, passed by address; the others are ints
    """

    arguments: int
    gives_int: bool
    keeps_gil: bool
    objects: tuple[int, ...] = ()


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_defined: list[_MethodDef] = []
"""The definitions of all functions; the interpreter reads them as long as the functions live."""


def builtin(name: str, address: int) -> Callable[..., int | None]:
    """Return the Python function whose code, from ``codegen.python_call``, is at the address."""
    method = _MethodDef(name.encode(), address, METH_FASTCALL, None)
    _defined.append(method)
    create = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return create(("PyCFunction_NewEx", ctypes.pythonapi))(ctypes.addressof(method), None, None)
