"""Instructions, each declared once: the fields of a row, its work, and its meaning.

A declaration is a class; its docstring says what the instruction does::

    class AxpyRow(Instruction):
        '''y[:n] += a * x[:n].'''

        y: Operand = updates("f32", "n")
        x: Operand = reads("f32", "n")
        n: int
        a: float

        def multiply_adds(self) -> int:
            return self.n

The lowering makes an instance by keywords, with tensors as operands: ``lowering.emit(AxpyRow(y=y, x=x, n=8, a=0.5))``.
A kernel gets a row, in which the operands are typed pointers: ``row.y[i] = …``. In compiled code, a field is a load at
an offset that the compiler knows; ``codegen.row`` declares the same fields to numba.

In a row, a number or a real is one int64, an operand is ``region << 48 | byte offset``. A group of fields is stored
inside its row.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields
from functools import cache
from math import prod
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    dataclass_transform,
)

import numpy as np

from pulse.jit.rows.cut import Cut
from pulse.jit.rows.fields import ElementType, Field, FieldCount, Fields, Spec, fields_of, words_of
from pulse.jit.rows.pointer import HEADER_WORDS, Bases, Pointer, Row, operand_at, real_at, real_bits
from pulse.jit.rows.span import Reach
from pulse.support.record import record

ELEMENT_DTYPES: dict[str, type[np.generic]] = {
    "f32": np.float32,
    "f64": np.float64,
    "i64": np.int64,
    "i32": np.int32,
    "u8": np.uint8,
    "i8": np.int8,
    "f16": np.float16,
    "bf16": np.uint16,
}
"""A bfloat16 is accessed as its bits; ``vload`` converts them to floats."""
Form: TypeAlias = Literal["f32", "f16", "bf16", "int8"]
ELEMENTS_OF_FORMS: dict[Form, ElementType] = {"f32": "f32", "f16": "f16", "bf16": "bf16", "int8": "i8"}
"""The element type of each form of weights."""
ROUNDED_FORMS: tuple[Form, ...] = ("int8", "bf16")
"""The forms of weights whose operands may be rounded too."""


class OperandTensor(Protocol):
    """An operand at compile time of a program."""

    @property
    def dtype(self) -> "np.dtype[Any]":
        """The type of the elements."""
        ...

    @property
    def size(self) -> int:
        """The number of elements."""
        ...


class Operand:
    """The type of a field that is a tensor when the instruction is emitted, and a pointer in a kernel."""

    def __get__(self, instance: object, owner: Any) -> Pointer: ...

    def __set__(self, instance: object, value: OperandTensor) -> None: ...


class OptionalOperand:
    """The type of an operand that may be missing if the kernel does not access it."""

    def __get__(self, instance: object, owner: Any) -> Pointer: ...

    def __set__(self, instance: object, value: OperandTensor | None) -> None: ...


class ScalesOperand:
    """The type of the scales of weights, which only int8 weights have."""

    def __get__(self, instance: object, owner: Any) -> Pointer | None: ...

    def __set__(self, instance: object, value: OperandTensor | None) -> None: ...


def element_of(field: Field, form: Form) -> ElementType:
    """Return the type of the elements of an operand; bytes if it has none."""
    return ELEMENTS_OF_FORMS[form] if field.kind == "weights" else field.spec.element or "u8"


def reads(element: ElementType | None, *count: FieldCount, rarely: bool = False) -> Any:
    """Declare an operand that is read; ``rarely``: only in the first pulse or beyond the ends of the stream."""
    return field(metadata={"spec": Spec("operand", element, 0 if rarely else 1, False, count)})


def writes(element: ElementType | None, *count: FieldCount) -> Any:
    """Declare an operand that is written."""
    return field(metadata={"spec": Spec("operand", element, 1, True, count)})


def updates(element: ElementType | None, *count: FieldCount, rarely: bool = False) -> Any:
    """Declare an operand that is read and written."""
    return field(metadata={"spec": Spec("operand", element, 0 if rarely else 2, True, count)})


def packed_weights() -> Any:
    """Declare weights of any form; the kernel is compiled once for each."""
    return field(metadata={"spec": Spec("weights")})


def weight_scales() -> Any:
    """Declare the f32 scales of int8 weights; None in the other forms."""
    return field(metadata={"spec": Spec("scales", "f32")})


def repeated_group(count: str) -> Any:
    """Declare a group that is repeated; ``count`` is an earlier field with the number of groups."""
    return field(metadata={"spec": Spec("groups", count=(count,))})


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    field_specifiers=(reads, writes, updates, packed_weights, weight_scales, repeated_group),
)
class RowFields(Fields):
    """Consecutive fields of a row."""

    DATA: ClassVar[tuple[str, ...]] = ()
    """The number fields that are values, not counts or steps of elements and frames: any int64."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        record(eq=False, kw_only=True)(cls)

    def __post_init__(self) -> None:
        """Check the fields. Raises TypeError, ValueError: a field is not as declared."""
        for row_field in fields_of(type(self)).values():
            value = getattr(self, row_field.name)
            if row_field.kind == "number":
                operator.index(value)
            elif row_field.kind == "groups":
                self._check_groups(row_field, value)
            elif row_field.kind == "operand" and value is not None:
                self._check_operand(row_field, value)

    def _check_groups(self, row_field: Field, value: Any) -> None:
        count = self.count_elements(row_field.spec)
        if len(value) != count:
            raise ValueError(
                f"{self._name_of(row_field)}: {len(value)} groups where {row_field.spec.count[0]} says {count}"
            )

    def _check_operand(self, row_field: Field, value: Any) -> None:
        spec = row_field.spec
        if spec.element is not None and value.dtype != ELEMENT_DTYPES[spec.element]:
            raise TypeError(f"{self._name_of(row_field)}: a tensor of {value.dtype}, not {spec.element}")
        if spec.count and value.size < self.count_elements(spec):
            raise ValueError(
                f"{self._name_of(row_field)}: {value.size} elements, of {self.count_elements(spec)}"
            )

    def _name_of(self, row_field: Field) -> str:
        return f"{type(self).__name__}.{row_field.name}"

    def count_elements(self, spec: Spec) -> int:
        """Return the product of ``spec.count``."""
        return prod(count if isinstance(count, int) else getattr(self, count) for count in spec.count)

    def arguments(self) -> "Iterator[OperandTensor | int]":
        """Yield the words of the row in order; operands as tensors."""
        for row_field in fields_of(type(self)).values():
            value = getattr(self, row_field.name)
            if row_field.kind == "group":
                yield from value.arguments()
            elif row_field.kind == "groups":
                for part in value:
                    yield from part.arguments()
            elif row_field.kind == "real":
                yield real_bits(value)
            elif row_field.kind == "number":
                yield operator.index(value)
            else:
                yield 0 if value is None else value

    def fields_by_name(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield all fields by name; a field of a group is prefixed with the group's name."""
        for row_field in fields_of(type(self)).values():
            value, name = getattr(self, row_field.name), prefix + row_field.name
            if row_field.kind == "group":
                yield from value.fields_by_name(f"{name}.")
            elif row_field.kind == "groups":
                for i, part in enumerate(value):
                    yield from part.fields_by_name(f"{name}[{i}].")
            else:
                yield name, value

    def operands(self) -> "Iterator[tuple[str, Spec, OperandTensor]]":
        """Yield all operands, including the operands of groups."""
        for row_field in _fields_with_operands(type(self)):
            value = getattr(self, row_field.name)
            if row_field.group is not None:
                for part in value if row_field.kind == "groups" else (value,):
                    yield from part.operands()
            elif value is not None:
                yield row_field.name, row_field.spec, value

    def reaches(self) -> Iterator[Reach]:
        """Yield the operands that are declared without a number of elements, each with the span that the row accesses.

        It is called for rows of untrusted files and must be correct for any numbers.
        Raises UnsafeRowError: they are not valid.
        """
        return iter(())

    @classmethod
    def from_words(cls, words: Row, start: int, bases: Bases, form: Form) -> Self:
        """Return the row from word ``start`` on for a kernel in plain Python; its pointers check every access."""
        row = object.__new__(cls)
        row.__dict__["source"] = words, start, bases, form
        return row

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Decode a field of a row when it is first read."""
            row_field = fields_of(type(self)).get(name)
            if row_field is None or "source" not in self.__dict__:
                raise AttributeError(name)
            words, start, bases, form = self.__dict__["source"]
            word = (
                start
                + row_field.word
                + sum(getattr(self, count) * size for count, size in row_field.groups_before)
            )
            value = self.__dict__[name] = self._value(row_field, words, word, bases, form)
            return value

    def _value(self, row_field: Field, words: Row, index: int, bases: Bases, form: Form) -> Any:
        if row_field.kind == "number":
            return int(words[index])
        if row_field.kind == "real":
            return real_at(words, index)
        if row_field.group is not None:
            count = self.count_elements(row_field.spec) if row_field.kind == "groups" else 1
            size = 0 if row_field.kind == "group" else words_of(row_field.group)
            groups = [row_field.group.from_words(words, index + size * i, bases, form) for i in range(count)]
            return groups if row_field.kind == "groups" else groups[0]
        if row_field.kind == "scales" and form != "int8":
            return None
        element = element_of(row_field, form)
        count = self.count_elements(row_field.spec) if row_field.spec.count else None
        return operand_at(words, index, bases, ELEMENT_DTYPES[element], count, row_field.spec.written)


RowT = TypeVar("RowT", bound=RowFields)


class Instruction(RowFields):
    """A row; its fields follow the kernel and the length."""

    START = HEADER_WORDS
    kernel: ClassVar[str] = ""
    """The name of the kernel that runs it, with weights of its first form."""
    rounds_activations: ClassVar[bool] = False
    """Whether the operands of its weights are rounded to the form of these."""

    @classmethod
    @cache
    def forms(cls) -> tuple[Form, ...]:
        """Return the forms of weights for which the instruction is declared."""
        specs: list[Spec | None] = [member.metadata.get("spec") for member in fields(cls)]  # type: ignore[arg-type]
        if not any(spec and spec.kind == "weights" for spec in specs):
            return ("f32",)
        return ROUNDED_FORMS if cls.rounds_activations else tuple(ELEMENTS_OF_FORMS)

    @property
    def form(self) -> Form:
        """The form of its weights."""
        if len(self.forms()) == 1:
            return "f32"
        for _, spec, value in self.operands():
            if spec.kind == "weights":
                return next(
                    form
                    for form, element in ELEMENTS_OF_FORMS.items()
                    if value.dtype == ELEMENT_DTYPES[element]
                )
        return "f32"

    @property
    def kernel_name(self) -> str:
        """The name of the kernel for its form."""
        return self.in_form(self.kernel, self.form)

    @classmethod
    def in_form(cls, kernel: str, form: Form) -> str:
        """Return the name of a kernel of this instruction for weights of a form; the first has no suffix."""
        return kernel if form == cls.forms()[0] else f"{kernel}_{form}"

    def multiply_adds(self) -> int:
        """Return the number of terms of sums of products that one run computes."""
        return 0

    def work(self) -> int:
        """Return the approximate time of a run, in multiply-adds of a product: a thousand take 30 ns."""
        return self.multiply_adds()

    def cuts(self) -> Iterator[Cut]:
        """Yield the ways to cut the row into parts that run at the same time."""
        return iter(())

    def applied_rows(self) -> frozenset[int] | None:
        """Return the rows of dispatchers that a run applies; None: its kernel has no dispatcher."""
        return None

    def touched_bytes(self) -> Mapping[str, int]:
        """Return the bytes that a run touches, for operands that it touches in part."""
        return {}


@cache
def _fields_with_operands(group: type[RowFields]) -> tuple[Field, ...]:
    """Return the fields that are operands or groups, which may contain operands."""
    return tuple(
        row_field for row_field in fields_of(group).values() if row_field.kind not in ("number", "real")
    )


def number_fields(name: str, values: Sequence[int]) -> dict[str, Any]:
    """Return fields with numbered names: ``n0``, ``n1`` ..."""
    return {f"{name}{i}": value for i, value in enumerate(values)}


def with_bases_at(row: RowT, words: int) -> RowT:
    """Return the same row over memories whose bases are this many words later."""
    row_words, start, bases, form = row.__dict__["source"]
    return row.from_words(row_words, start, bases + words, form)


def word_of_bases(row: RowFields, i: int) -> int:
    """Return word i of the bases."""
    bases: Any = row.__dict__["source"][2]
    return bases[i]
