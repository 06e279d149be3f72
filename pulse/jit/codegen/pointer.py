# pyright: basic, reportArgumentType=false
"""``pointer`` for numba: address arithmetic, loads and stores, without checks or wrapped indices."""

import operator
from collections.abc import Callable

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import (
    AbstractTemplate,
    infer,
    infer_global,
    make_intrinsic_template,
    signature,
)
from numba.extending import lower_builtin, models, register_model

INT64 = ir.IntType(64)


class PointerType(types.Type):
    """A pointer to elements of a numba scalar type."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"Pointer({dtype})")


@register_model(PointerType)
class PointerModel(models.PrimitiveModel):
    """The LLVM pointer to the element's data type."""

    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, ir.PointerType(dmm.lookup(fe_type.dtype).get_data_type()))


WORDS = PointerType(types.int64)


def word(builder, words, index):
    """Load the int64 at ``words[index]``."""
    return builder.load(builder.gep(words, [index], inbounds=True))


def declare_type(function: Callable, resolve: Callable[[tuple], object]) -> None:
    """Declare that ``resolve(argument types)`` returns the signature of ``function``, or None.

    Arguments are converted.
    """

    def generic(self, args, kws):
        return None if kws else resolve(args)

    members = {"key": function, "generic": generic}
    template = type(f"{function.__name__}_template", (AbstractTemplate,), members)
    infer(template)
    infer_global(function, types.Function(template))


def implements_in_numba(function: Callable) -> Callable[[Callable], Callable]:
    """Make a decorator that defines ``function`` in compiled code, in the form of numba's intrinsics.

    An intrinsic is a function of the typing context and the argument types that returns the signature and the function
    that builds the code.
    """

    def register(define: Callable) -> Callable:
        template = make_intrinsic_template(function, define, function.__name__)
        infer(template)
        infer_global(function, types.Function(template))
        return define

    return register


def has_pointer_at(args, *numbers: int) -> bool:
    """Return whether the arguments are a pointer and, at the given positions, integers."""
    integers = (isinstance(args[index], types.Integer) for index in numbers)
    return isinstance(args[0], PointerType) and all(integers)


declare_type(
    operator.getitem,
    lambda args: signature(args[0].dtype, args[0], types.int64) if has_pointer_at(args, 1) else None,
)
declare_type(
    operator.setitem,
    lambda args: (
        signature(types.none, args[0], types.int64, args[0].dtype)
        if has_pointer_at(args, 1) and isinstance(args[2], types.Number | types.Boolean)
        else None
    ),
)
for _operator in (operator.add, operator.iadd):
    declare_type(
        _operator, lambda args: signature(args[0], args[0], types.int64) if has_pointer_at(args, 1) else None
    )


@lower_builtin(operator.getitem, PointerType, types.int64)
def _getitem(context, builder, sig, args):
    p, i = args
    return context.unpack_value(builder, sig.return_type, builder.gep(p, [i], inbounds=True))


@lower_builtin(operator.setitem, PointerType, types.int64, types.Any)
def _setitem(context, builder, sig, args):
    p, i, value = args
    context.pack_value(builder, sig.args[2], value, builder.gep(p, [i], inbounds=True))
    return context.get_dummy_value()


@lower_builtin(operator.add, PointerType, types.int64)
@lower_builtin(operator.iadd, PointerType, types.int64)
def _add(context, builder, sig, args):
    p, n = args
    return builder.gep(p, [n], inbounds=True)
