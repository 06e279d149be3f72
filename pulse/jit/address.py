# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportAssignmentType=false
"""Addresses as ints made into typed pointers, and back; only in compiled code."""

from collections.abc import Callable

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
