# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
"""Addresses as ints made into typed pointers, and back; only in compiled code."""

from numba.core import types
from numba.extending import intrinsic

from pulse.program.kernels.pointer_lowering import INT64, WORDS, PointerType

FLOATS, BYTES, SHORTS = PointerType(types.float32), PointerType(types.uint8), PointerType(types.int32)


def _pointer_at(result: PointerType):
    def pointer_at(typingctx, address):
        def build(context, builder, sig, args):
            return builder.inttoptr(args[0], context.get_value_type(result))

        return result(types.int64), build

    return pointer_at


words_at = intrinsic(_pointer_at(WORDS))
"""The int64 at an address."""
floats_at = intrinsic(_pointer_at(FLOATS))
"""The float32 at an address."""
bytes_at = intrinsic(_pointer_at(BYTES))
"""The uint8 at an address."""


@intrinsic
def address_of(typingctx, pointer):
    """The address that a pointer holds."""

    def build(context, builder, sig, args):
        return builder.ptrtoint(args[0], INT64)

    return types.int64(pointer), build
