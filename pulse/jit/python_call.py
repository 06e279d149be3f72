# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
"""How Python calls a C function of int64: a builtin function whose few instructions are LLVM code of our own.

ctypes and cffi do the same through libffi and take three times as long.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

INT, INT64, POINTER = ir.IntType(32), ir.IntType(64), ir.PointerType(ir.IntType(8))
NOTHING = ir.VoidType()
NULL = ir.Constant(POINTER, None)
METH_FASTCALL = 0x80

_FUNCTIONS = {
    "PyLong_AsLongLong": (INT64, POINTER),
    "PyLong_FromLongLong": (POINTER, INT64),
    "PyErr_Occurred": (POINTER,),
    "PyErr_BadArgument": (INT,),
    "Py_IncRef": (NOTHING, POINTER),
    "PyEval_SaveThread": (POINTER,),
    "PyEval_RestoreThread": (NOTHING, POINTER),
}
"""Of the interpreter's stable interface: result and arguments."""
NEEDS = tuple(_FUNCTIONS)


def addresses() -> dict[str, int]:
    """Where the functions of the interpreter are that the code needs."""
    return {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in NEEDS}


@dataclass(frozen=True)
class Form:
    """What Python calls.

    arguments  how many ints
    gives_int  an int comes back; else None
    brief      it keeps the GIL
    """

    arguments: int
    gives_int: bool
    brief: bool

    def code(self, symbol: str, function: str, triple: str) -> str:
        """LLVM code of ``symbol``, a METH_FASTCALL function around the C function of int64. Its self is None."""
        module = ir.Module(symbol)
        module.triple = triple
        known = {
            name: ir.Function(module, ir.FunctionType(result, arguments), name)
            for name, (result, *arguments) in _FUNCTIONS.items()
        }
        inner_type = ir.FunctionType(INT64 if self.gives_int else NOTHING, [INT64] * self.arguments)
        inner = ir.Function(module, inner_type, function)
        outer_type = ir.FunctionType(POINTER, [POINTER, POINTER.as_pointer(), INT64])
        outer = ir.Function(module, outer_type, symbol)
        builder = ir.IRBuilder(outer.append_basic_block())
        none, given, count = outer.args

        def call(name: str, *arguments):
            return builder.call(known[name], arguments)

        with builder.if_then(builder.icmp_signed("!=", count, INT64(self.arguments)), likely=False):
            call("PyErr_BadArgument")
            builder.ret(NULL)
        values = []
        for place in range(self.arguments):
            value = call("PyLong_AsLongLong", builder.load(builder.gep(given, [INT64(place)])))
            with (
                builder.if_then(builder.icmp_signed("==", value, INT64(-1)), likely=False),
                builder.if_then(builder.icmp_unsigned("!=", call("PyErr_Occurred"), NULL)),
            ):
                builder.ret(NULL)
            values.append(value)
        thread = None if self.brief else call("PyEval_SaveThread")
        result = builder.call(inner, values)
        if thread is not None:
            call("PyEval_RestoreThread", thread)
        if self.gives_int:
            builder.ret(call("PyLong_FromLongLong", result))
        else:
            call("Py_IncRef", none)
            builder.ret(none)
        return str(module)


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_defined: list[_MethodDef] = []
"""The interpreter reads them as long as the functions live."""


def builtin(name: str, address: int) -> Callable[..., int | None]:
    """The Python function whose code, made by ``Form.code``, is at the address."""
    made = _MethodDef(name.encode(), address, METH_FASTCALL, None)
    _defined.append(made)
    create = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return create(("PyCFunction_NewEx", ctypes.pythonapi))(ctypes.addressof(made), None, None)
