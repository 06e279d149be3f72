# pyright: basic, reportArgumentType=false
"""``structs`` for numba: a pointer, and fields that are loads and stores at known offsets."""

import operator

from llvmlite import ir
from numba.core import types
from numba.core.imputils import lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr, signature
from numba.extending import lower_builtin, lower_getattr_generic, models, register_model

from pulse.jit.codegen.address import declare_pointer_at
from pulse.jit.codegen.pointer import INT64, WORDS, declare_type
from pulse.jit.language.declared import StructAt
from pulse.jit.language.structs import Struct
from pulse.jit.rows.fields import fields_of, layout_text, words_of

DOUBLE = ir.DoubleType()


class StructType(types.Type):
    """A struct; its name includes the whole layout."""

    def __init__(self, kind: type[Struct]) -> None:
        self.kind = kind
        super().__init__(name=f"{kind.__module__}.{kind.__qualname__}({layout_text(kind)})")

    def type_of(self, name: str):
        """Return the type of a field in compiled code; None if no field has that name."""
        field = fields_of(self.kind).get(name)
        if field is None:
            return None
        if field.group is not None:
            return StructType(field.group)
        return {"number": types.int64, "real": types.float64, "numbers": WORDS}[field.kind]


@register_model(StructType)
class StructModel(models.PrimitiveModel):
    """The address of the first word."""

    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, ir.PointerType(INT64))


@infer_getattr
class _Fields(AttributeTemplate):
    key = StructType

    def generic_resolve(self, struct, name):
        return struct.type_of(name)


def place_of(builder, struct: StructType, value, name: str):
    """Return the address of a field."""
    return builder.gep(value, [INT64(fields_of(struct.kind)[name].word)], inbounds=True)


@lower_getattr_generic(StructType)
def _load(context, builder, struct, value, name):
    address, kind = place_of(builder, struct, value, name), struct.type_of(name)
    if kind == types.int64:
        return builder.load(address)
    return builder.bitcast(builder.load(address), DOUBLE) if kind == types.float64 else address


@lower_setattr_generic(StructType)
def _store(context, builder, sig, args, name):
    value = builder.bitcast(args[1], INT64) if sig.args[1] == types.float64 else args[1]
    builder.store(value, place_of(builder, sig.args[0], args[0], name))


declare_type(
    operator.getitem,
    lambda args: (
        signature(args[0], args[0], types.int64)
        if isinstance(args[0], StructType) and isinstance(args[1], types.Integer)
        else None
    ),
)


@lower_builtin(operator.getitem, StructType, types.int64)
def _nth(context, builder, sig, args):
    index = builder.mul(args[1], INT64(words_of(sig.args[0].kind)))
    return builder.gep(args[0], [index], inbounds=True)


def declare_struct_at(declared: StructAt) -> None:
    """Declare to numba a function from an address to a struct."""
    declare_pointer_at(declared.function, StructType(declared.kind))
