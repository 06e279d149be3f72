# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportAssignmentType=false
"""Addresses as ints made into typed pointers, and back; C functions by address and by name; only in compiled code."""

from collections.abc import Callable

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from pulse.jit.pointer import Pointer
from pulse.jit.pointer_lowering import INT64, WORDS, PointerType

FLOATS, DOUBLES, BYTES = PointerType(types.float32), PointerType(types.float64), PointerType(types.uint8)


def _pointer_at(result: PointerType):
    def pointer_at(typingctx, address):
        def build(context, builder, sig, args):
            return builder.inttoptr(args[0], context.get_value_type(result))

        return result(types.int64), build

    return pointer_at


words_at: Callable[[int], Pointer] = intrinsic(_pointer_at(WORDS))
"""The int64 at an address."""
floats_at: Callable[[int], Pointer] = intrinsic(_pointer_at(FLOATS))
"""The float32 at an address."""
doubles_at: Callable[[int], Pointer] = intrinsic(_pointer_at(DOUBLES))
"""The float64 at an address."""
bytes_at: Callable[[int], Pointer] = intrinsic(_pointer_at(BYTES))
"""The uint8 at an address."""


@intrinsic
def address_of(typingctx, pointer):
    """The address that a pointer holds."""

    def build(context, builder, sig, args):
        return builder.ptrtoint(args[0], INT64)

    return types.int64(pointer), build


@intrinsic
def call_at(typingctx, function, argument):
    """Call the C function at an address: ``void(int64)``."""

    def build(context, builder, sig, args):
        kind = ir.FunctionType(ir.VoidType(), [INT64])
        builder.call(builder.inttoptr(args[0], ir.PointerType(kind)), [args[1]])
        return context.get_dummy_value()

    return types.none(types.int64, types.int64), build


def external(builder, name, result, *arguments):
    """The C function, or LLVM's, of that name, for ``builder.call``; LLVM types.

    What it is given the address of is made with ``alloca_once``: an ``alloca`` in a loop takes more of the stack each
    time, until there is none.
    """
    found = builder.module.globals.get(name)
    return found or ir.Function(builder.module, ir.FunctionType(result, arguments), name)
