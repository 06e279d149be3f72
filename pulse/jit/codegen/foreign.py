# pyright: basic, reportArgumentType=false
"""``foreign`` for numba: calls of C functions."""

from llvmlite import ir
from numba.core import types
from numba.extending import lower_builtin

from pulse.jit.codegen.pointer import declare_type
from pulse.jit.language.declared import CFunction, CSignature

KINDS = {
    "i32": types.int32,
    "i64": types.int64,
    "u64": types.uint64,
    "address": types.voidptr,
    None: types.void,
}


def numba_signature(signature: CSignature):
    return KINDS[signature.returns](*(KINDS[kind] for kind in signature.takes))


def declare_c_function(declared: CFunction) -> None:
    """Declare to numba a C function by name, or at the address that is its first argument."""
    signature, name = numba_signature(declared.signature), declared.name
    whole = signature if name else signature.return_type(types.int64, *signature.args)
    declare_type(declared.call, lambda args: whole if len(args) == len(whole.args) else None)

    @lower_builtin(declared.call, *whole.args)
    def _call(context, builder, sig, args):
        takes = [context.get_value_type(argument_type) for argument_type in signature.args]
        returns = signature.return_type
        kind = ir.FunctionType(
            ir.VoidType() if returns == types.void else context.get_value_type(returns), takes
        )
        if name:
            function = external(builder, name, kind)
        else:
            function, args = builder.inttoptr(args[0], ir.PointerType(kind)), args[1:]
        result = builder.call(function, args)
        return context.get_dummy_value() if returns == types.void else result


def external(builder, name, kind):
    """Return the C or LLVM function of that name and LLVM type, for ``builder.call``.

    Allocate arguments that are passed by address with ``alloca_once``: an ``alloca`` in a loop takes more of the stack
    each time, until it overflows.
    """
    return builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
