# pyright: basic, reportArgumentType=false
"""``instruction`` for numba: rows are two pointers, and their fields are loads from known offsets."""

import operator
from functools import cache

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate, infer_getattr, signature
from numba.extending import lower_builtin, lower_getattr_generic, models, register_model

from pulse.jit.codegen.pointer import INT64, WORDS, PointerType, declare_type, word
from pulse.jit.rows import instruction, pointer
from pulse.jit.rows.fields import Field, fields_of, layout_text, words_of
from pulse.jit.rows.instruction import Form, RowFields, element_of

ELEMENTS = {
    "f32": types.float32,
    "f64": types.float64,
    "i64": types.int64,
    "i32": types.int32,
    "u8": types.uint8,
    "i8": types.int8,
    "f16": types.int16,
    "bf16": types.uint16,
}


class RowType(types.Type):
    """A row of an instruction, or a group of one; its name includes the whole layout."""

    def __init__(self, group: type[RowFields], form: Form = "f32") -> None:
        self.group = group
        self.form: Form = form
        super().__init__(name=f"{group.__module__}.{group.__qualname__}/{form}({layout_text(group)})")

    def type_of(self, field: Field) -> types.Type:
        if field.kind == "number":
            return types.int64
        if field.kind == "real":
            return types.float64
        if field.kind == "group":
            return RowType(field.group, self._form_of(field.group))
        if field.kind == "groups":
            return GroupsType(field.group, self._form_of(field.group))
        if field.kind == "scales" and self.form != "int8":
            return types.none
        return PointerType(ELEMENTS[element_of(field, self.form)])

    def _form_of(self, group: type[RowFields]) -> Form:
        """Return the form of a group in this row: one for all forms of a kernel if it has no stored weights."""
        if _has_weights(group):
            return self.form
        return "f32"


@cache
def _has_weights(group: type[RowFields]) -> bool:
    """Return whether a group, or a group in it, has a field whose type depends on the form."""
    for field in fields_of(group).values():
        if field.kind in ("weights", "scales") or (field.group and _has_weights(field.group)):
            return True
    return False


def kernel_signature(group: type[RowFields], form: Form):
    return types.void(RowType(group, form))


class GroupsType(types.Type):
    """Consecutive groups of fields in a row: ``groups[i]`` is one of them."""

    def __init__(self, group: type[RowFields], form: Form) -> None:
        self.row = RowType(group, form)
        super().__init__(name=f"groups of {self.row.name}")


@register_model(RowType)
@register_model(GroupsType)
class RowModel(models.StructModel):
    """Pointers to the first word of the row and to the bases of the memories."""

    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, [("words", WORDS), ("bases", WORDS)])


@infer_getattr
class _Fields(AttributeTemplate):
    key = RowType

    def generic_resolve(self, row, name):
        field = fields_of(row.group).get(name)
        return field and row.type_of(field)


def _parts_of(builder, value):
    return builder.extract_value(value, 0), builder.extract_value(value, 1)


def _row(context, builder, kind, words, bases):
    row = cgutils.create_struct_proxy(kind)(context, builder)
    row.words, row.bases = words, bases
    return row._getvalue()


@lower_getattr_generic(RowType)
def _field(context, builder, row, value, name):
    words, bases = _parts_of(builder, value)
    fields = fields_of(row.group)
    field, kind = fields[name], row.type_of(fields[name])
    index = INT64(field.word)
    for count, size in field.groups_before:
        groups = word(builder, words, INT64(fields[count].word))
        index = builder.add(index, builder.mul(groups, INT64(size)))
    if field.kind in ("group", "groups"):
        return _row(context, builder, kind, builder.gep(words, [index], inbounds=True), bases)
    if kind == types.none:
        return context.get_dummy_value()
    packed = word(builder, words, index)
    if field.kind == "number":
        return packed
    if field.kind == "real":
        return builder.bitcast(packed, ir.DoubleType())
    base = word(builder, bases, builder.lshr(packed, INT64(pointer.REGION_SHIFT)))
    offset = builder.and_(packed, INT64((1 << pointer.REGION_SHIFT) - 1))
    return builder.inttoptr(builder.add(base, offset), context.get_value_type(kind))


declare_type(
    operator.getitem,
    lambda args: (
        signature(args[0].row, args[0], types.int64)
        if isinstance(args[0], GroupsType) and isinstance(args[1], types.Integer)
        else None
    ),
)
for _function, _result in ((instruction.with_bases_at, None), (instruction.word_of_bases, types.int64)):
    declare_type(
        _function,
        lambda args, result=_result: (
            signature(result or args[0], args[0], types.int64)
            if len(args) == 2 and isinstance(args[0], RowType)
            else None
        ),
    )


@lower_builtin(operator.getitem, GroupsType, types.int64)
def _one_group(context, builder, sig, args):
    words, bases = _parts_of(builder, args[0])
    index = builder.mul(args[1], INT64(words_of(sig.return_type.group)))
    return _row(context, builder, sig.return_type, builder.gep(words, [index], inbounds=True), bases)


@lower_builtin(instruction.with_bases_at, RowType, types.int64)
def _lanes_on(context, builder, sig, args):
    words, bases = _parts_of(builder, args[0])
    return _row(context, builder, sig.args[0], words, builder.gep(bases, [args[1]], inbounds=True))


@lower_builtin(instruction.word_of_bases, RowType, types.int64)
def _word_of_bases(context, builder, sig, args):
    return word(builder, _parts_of(builder, args[0])[1], args[1])
