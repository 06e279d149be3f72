# pyright: basic, reportArgumentType=false, reportCallIssue=false
"""``stack`` for numba: one alloca at the entry of the kernel, aligned to a cache line."""

import operator
from collections.abc import Callable

from numba.core import types
from numba.core.typing.templates import signature
from numba.extending import intrinsic, overload

from pulse.jit.codegen.pointer import INT64, PointerType, declare_type
from pulse.jit.language import stack

LINE_BYTES = 64
"""The bytes of a cache line."""
POINTERS = PointerType(PointerType(types.float32))


def _declare(function: Callable, element: types.Type) -> None:
    result = PointerType(element)

    @intrinsic(prefer_literal=True)
    def reserve(typingctx, count):
        if not isinstance(count, types.IntegerLiteral):
            return None
        size = count.literal_value

        def build(context, builder, sig, args):
            data = context.data_model_manager[element].get_data_type()
            with builder.goto_entry_block():
                memory = builder.alloca(data, INT64(size))
            memory.align = LINE_BYTES
            return memory

        return result(count), build

    @overload(function, inline="always")
    def _reserve(count):
        return lambda count: reserve(count)


_declare(stack.stack_f32, types.float32)
_declare(stack.stack_f64, types.float64)
_declare(stack.stack_i64, types.int64)
_declare(stack.stack_pointers, PointerType(types.float32))

declare_type(
    operator.setitem,
    lambda args: (
        signature(types.none, POINTERS, types.int64, POINTERS.dtype)
        if args[0] == POINTERS and isinstance(args[1], types.Integer) and args[2] == POINTERS.dtype
        else None
    ),
)
