# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
"""C functions by name and by address, as compiled code calls them."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from llvmlite import ir
from numba.core import types
from numba.extending import lower_builtin

from pulse.jit.pointer_lowering import WORDS, typed

CType: TypeAlias = Literal["i32", "i64", "u64", "address", "words"]
KINDS = {
    "i32": types.int32,
    "i64": types.int64,
    "u64": types.uint64,
    "address": types.voidptr,
    "words": WORDS,
    None: types.void,
}


def c_signature(gives: CType | None, *takes: CType) -> Any:
    """What a C function gives and takes. An ``address`` is one that ``address_of`` makes an int of."""
    return KINDS[gives](*(KINDS[kind] for kind in takes))


def c_function(name: str, signature: Any) -> Callable[..., Any]:
    """The C function, or LLVM's, of that name; it is looked for in this process when the code is linked.

    Where it takes an address, an int64 does as well: ``address_of(stack_i64(2))``.
    """
    return _called(signature, signature, lambda builder, kind, args: (external(builder, name, kind), args))


def c_function_at(signature: Any) -> Callable[..., Any]:
    """A function of an address and of what the C function takes that is there."""

    def found(builder, kind, args):
        return builder.inttoptr(args[0], ir.PointerType(kind)), args[1:]

    return _called(signature, signature.return_type(types.int64, *signature.args), found)


def _called(signature: Any, whole: Any, found: Callable[..., Any]) -> Callable[..., Any]:
    """What compiled code calls, typed ``whole``: ``found`` gives the LLVM function and its arguments."""

    def call(*arguments):
        raise NotImplementedError("only compiled code calls C functions")

    typed(call, lambda args: whole if len(args) == len(whole.args) else None)

    @lower_builtin(call, *whole.args)
    def _call(context, builder, sig, args):
        takes = [context.get_value_type(each) for each in signature.args]
        gives = signature.return_type
        kind = ir.FunctionType(ir.VoidType() if gives == types.void else context.get_value_type(gives), takes)
        function, arguments = found(builder, kind, args)
        result = builder.call(function, arguments)
        return context.get_dummy_value() if gives == types.void else result

    return call


def external(builder, name, kind):
    """The C function, or LLVM's, of that name and LLVM type, for ``builder.call``.

    What it is given the address of is made with ``alloca_once``: an ``alloca`` in a loop takes more of the stack each
    time, until there is none.
    """
    return builder.module.globals.get(name) or ir.Function(builder.module, kind, name)


call_at = c_function_at(c_signature(None, "i64"))
"""Call the C function at an address: ``void(int64)``."""
