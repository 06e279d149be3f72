"""Instructions, each declared once: the fields of a row, its work, and what it means.

A declaration is a class; its docstring says what the instruction does::

    class Axpy(Instruction):
        '''y[:n] += a * x[:n].'''

        y: Operand = updates("f32", "n")
        x: Operand = reads("f32", "n")
        n: int
        a: float

        def multiply_adds(self) -> int:
            return self.n

The lowering makes an instance of keywords, tensors for the operands: ``cx.emit(Axpy(y=y, x=x, n=8, a=0.5))``. A kernel
is given a row of it, in which the operands are typed pointers: ``row.y[i] = …``. Compiled, a field is a load from a
place that is known to the compiler; ``row_codegen`` gives numba the same fields.

In a row a number or a real is one int64, an operand ``region << 48 | byte offset``. A group of fields is inside
of the row that has it.
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

from pulse.jit.cut import Cut
from pulse.jit.fields import Count, Element, Field, Fields, Spec, fields_of, words_of
from pulse.jit.pointer import HEADER, Bases, Pointer, Row, operand_at, real_at, real_bits
from pulse.jit.span import Reach
from pulse.support.record import record

DTYPES: dict[str, type[np.generic]] = {
    "f32": np.float32,
    "f64": np.float64,
    "i64": np.int64,
    "i32": np.int32,
    "u8": np.uint8,
    "i8": np.int8,
    "f16": np.float16,
    "bf16": np.uint16,
}
"""A bfloat16 is seen as its bits; ``vload`` makes floats of them."""
Form: TypeAlias = Literal["f32", "f16", "bf16", "int8"]
FORMS: dict[Form, Element] = {"f32": "f32", "f16": "f16", "bf16": "bf16", "int8": "i8"}
"""What weights are stored as."""


class OperandTensor(Protocol):
    """What an operand is while a program is made."""

    @property
    def dtype(self) -> "np.dtype[Any]":
        """The type of its elements."""
        ...

    @property
    def size(self) -> int:
        """How many elements it has."""
        ...


class Operand:
    """The type of a field that is a tensor where the instruction is made, and a pointer in a kernel."""

    def __get__(self, instance: object, owner: Any) -> Pointer: ...

    def __set__(self, instance: object, value: OperandTensor) -> None: ...


class OptionalOperand:
    """A tensor in memory that may be missing, where the kernel does not look at it."""

    def __get__(self, instance: object, owner: Any) -> Pointer: ...

    def __set__(self, instance: object, value: OperandTensor | None) -> None: ...


class ScalesOperand:
    """The scales of weights, which only weights of int8 have."""

    def __get__(self, instance: object, owner: Any) -> Pointer | None: ...

    def __set__(self, instance: object, value: OperandTensor | None) -> None: ...


def reads(element: Element | None, *count: Count, rarely: bool = False) -> Any:
    """An operand that is read; ``rarely``: in the first pulse only, or beyond the ends of the stream. See ``Spec``."""
    return field(metadata={"spec": Spec("operand", element, 0 if rarely else 1, False, count)})


def writes(element: Element | None, *count: Count) -> Any:
    """An operand that is written."""
    return field(metadata={"spec": Spec("operand", element, 1, True, count)})


def updates(element: Element | None, *count: Count, rarely: bool = False) -> Any:
    """An operand that is read and written."""
    return field(metadata={"spec": Spec("operand", element, 0 if rarely else 2, True, count)})


def packed_weights() -> Any:
    """Weights of any form; the kernel is compiled once for each."""
    return field(metadata={"spec": Spec("weights")})


def weight_scales() -> Any:
    """The scales of weights of int8, of f32; None in the other forms."""
    return field(metadata={"spec": Spec("scales", "f32")})


def many(count: str) -> Any:
    """Groups, as many as another field in front says."""
    return field(metadata={"spec": Spec("groups", count=(count,))})


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    field_specifiers=(reads, writes, updates, packed_weights, weight_scales, many),
)
class RowFields(Fields):
    """Fields that lie one after the other in a row."""

    DATA: ClassVar[tuple[str, ...]] = ()
    """Numbers that are values, not counts or steps of elements and frames: any int64."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        record(eq=False, kw_only=True)(cls)

    def __post_init__(self) -> None:
        """Raises TypeError or ValueError: a field is not what is declared."""
        for each in fields_of(type(self)).values():
            value = getattr(self, each.name)
            if each.kind == "number":
                operator.index(value)
            elif each.kind == "groups":
                self._check_groups(each, value)
            elif each.kind == "operand" and value is not None:
                self._check_operand(each, value)

    def _check_groups(self, each: Field, value: Any) -> None:
        count = self.count_elements(each.spec)
        if len(value) != count:
            raise ValueError(
                f"{self._name_of(each)}: {len(value)} groups where {each.spec.count[0]} says {count}"
            )

    def _check_operand(self, each: Field, value: Any) -> None:
        spec = each.spec
        if spec.element is not None and value.dtype != DTYPES[spec.element]:
            raise TypeError(f"{self._name_of(each)}: a tensor of {value.dtype}, not {spec.element}")
        if spec.count and value.size < self.count_elements(spec):
            raise ValueError(f"{self._name_of(each)}: {value.size} elements, of {self.count_elements(spec)}")

    def _name_of(self, each: Field) -> str:
        return f"{type(self).__name__}.{each.name}"

    def count_elements(self, spec: Spec) -> int:
        """The product of ``spec.count``."""
        return prod(count if isinstance(count, int) else getattr(self, count) for count in spec.count)

    def arguments(self) -> "Iterator[OperandTensor | int]":
        """The words of the row in order; operands as tensors."""
        for each in fields_of(type(self)).values():
            value = getattr(self, each.name)
            if each.kind == "group":
                yield from value.arguments()
            elif each.kind == "groups":
                for one in value:
                    yield from one.arguments()
            elif each.kind == "real":
                yield real_bits(value)
            elif each.kind == "number":
                yield operator.index(value)
            else:
                yield 0 if value is None else value

    def fields_by_name(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """All fields by name, those of groups after the name of the group."""
        for each in fields_of(type(self)).values():
            value, name = getattr(self, each.name), prefix + each.name
            if each.kind == "group":
                yield from value.fields_by_name(f"{name}.")
            elif each.kind == "groups":
                for i, one in enumerate(value):
                    yield from one.fields_by_name(f"{name}[{i}].")
            else:
                yield name, value

    def operands(self) -> "Iterator[tuple[str, Spec, OperandTensor]]":
        """All operands, those of groups too."""
        for each in _fields_with_operands(type(self)):
            value = getattr(self, each.name)
            if each.group is not None:
                for one in value if each.kind == "groups" else (value,):
                    yield from one.operands()
            elif value is not None:
                yield each.name, each.spec, value

    def reaches(self) -> Iterator[Reach]:
        """How far operands reach that are not declared with a number of elements: each with its span.

        It is asked of rows of files from strangers, and the answer must hold for any numbers. Raises UnsafeRowError.
        """
        return iter(())

    @classmethod
    def from_words(cls, words: Row, at: int, bases: Bases, form: Form) -> Self:
        """A row from its word ``at`` on, as a kernel in plain Python sees it; pointers check what is declared."""
        row = object.__new__(cls)
        row.__dict__["source"] = words, at, bases, form
        return row

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A field of a row that is seen, decoded when it is first asked for."""
            each = fields_of(type(self)).get(name)
            if each is None or "source" not in self.__dict__:
                raise AttributeError(name)
            words, at, bases, form = self.__dict__["source"]
            place = at + each.at + sum(getattr(self, count) * size for count, size in each.behind)
            value = self.__dict__[name] = self._value(each, words, place, bases, form)
            return value

    def _value(self, each: Field, words: Row, at: int, bases: Bases, form: Form) -> Any:
        if each.kind == "number":
            return int(words[at])
        if each.kind == "real":
            return real_at(words, at)
        if each.group is not None:
            count = self.count_elements(each.spec) if each.kind == "groups" else 1
            size = 0 if each.kind == "group" else words_of(each.group)
            groups = [
                each.group.from_words(words, at + size * number, bases, form) for number in range(count)
            ]
            return groups if each.kind == "groups" else groups[0]
        if each.kind == "scales" and form != "int8":
            return None
        element = FORMS[form] if each.kind == "weights" else each.spec.element or "u8"
        count = self.count_elements(each.spec) if each.spec.count else None
        return operand_at(words, at, bases, DTYPES[element], count, each.spec.written)


P = TypeVar("P", bound=RowFields)


class Instruction(RowFields):
    """A row: fields after the kernel and the length."""

    START = HEADER
    kernel: ClassVar[str] = ""
    """The name of the kernel that runs it, with weights of f32."""
    rounds_rows: ClassVar[bool] = False
    """Whether what it multiplies becomes codes of int8, as its weights are."""

    @classmethod
    @cache
    def forms(cls) -> tuple[Form, ...]:
        """The forms of weights that it is declared for."""
        given: list[Spec | None] = [each.metadata.get("spec") for each in fields(cls)]  # type: ignore[arg-type]
        return tuple(FORMS) if any(spec and spec.kind == "weights" for spec in given) else ("f32",)

    @property
    def form(self) -> Form:
        """The form of its weights."""
        if len(self.forms()) == 1:
            return "f32"
        for _, spec, value in self.operands():
            if spec.kind == "weights":
                return next(form for form, element in FORMS.items() if value.dtype == DTYPES[element])
        return "f32"

    @property
    def kernel_name(self) -> str:
        """The name of the kernel for its form."""
        return in_form(self.kernel, self.form)

    def multiply_adds(self) -> int:
        """Terms of sums of products that one run computes."""
        return 0

    def work(self) -> int:
        """About how long a run takes, in multiply-adds of a product: a thousand are 30 ns."""
        return self.multiply_adds()

    def cuts(self) -> Iterator[Cut]:
        """How the row may be cut into parts that run at the same time."""
        return iter(())

    def applied_rows(self) -> frozenset[int] | None:
        """The rows of dispatchers that a run applies; None: its kernel has no dispatcher."""
        return None

    def touched_bytes(self) -> Mapping[str, int]:
        """The bytes that a run touches of operands that it does not touch whole."""
        return {}


@cache
def _fields_with_operands(group: type[RowFields]) -> tuple[Field, ...]:
    """The fields that are operands, or groups, which may have some."""
    return tuple(each for each in fields_of(group).values() if each.kind not in ("number", "real"))


def number_fields(name: str, values: Sequence[int]) -> dict[str, Any]:
    """Fields whose names are numbered: ``n0``, ``n1`` ..."""
    return {f"{name}{i}": value for i, value in enumerate(values)}


def in_form(kernel: str, form: Form) -> str:
    """The name of a kernel for weights of a form."""
    return kernel if form == "f32" else f"{kernel}_{form}"


def lanes_on(row: P, words: int) -> P:
    """The same row over memories whose bases lie this many words further on."""
    start, at, bases, form = row.__dict__["source"]
    return row.from_words(start, at, bases + words, form)


def word_of_bases(row: RowFields, i: int) -> int:
    """A word among the bases of a row."""
    bases: Any = row.__dict__["source"][2]
    return bases[i]
