# pyright: basic, reportArgumentType=false
"""``address`` for numba: casts between ints and pointers."""

from collections.abc import Callable

from numba.core import types

from pulse.jit.codegen.pointer import INT64, WORDS, PointerType, implements_in_numba
from pulse.jit.language import address


def declare_pointer_at(function: Callable, result: types.Type) -> None:
    """Declare to numba a function from an address to a pointer, or a struct."""

    @implements_in_numba(function)
    def _pointer_at(typingctx, address):
        def build(context, builder, sig, args):
            return builder.inttoptr(args[0], context.get_value_type(result))

        return result(types.int64), build


for _function, _result in (
    (address.words_at, WORDS),
    (address.floats_at, PointerType(types.float32)),
    (address.doubles_at, PointerType(types.float64)),
    (address.bytes_at, PointerType(types.uint8)),
):
    declare_pointer_at(_function, _result)


@implements_in_numba(address.address_of)
def _address_of(typingctx, pointer):
    def build(context, builder, sig, args):
        return builder.ptrtoint(args[0], INT64)

    return types.int64(pointer), build
