"""Fields of memory that compiled code and Python share, declared once as the annotations of a class.

``instruction`` uses them for rows, ``structs`` for writable memory. All fields are words of 8 bytes, in the order of
the class.
"""

from dataclasses import field, fields
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, TypeAlias, get_args, get_type_hints

from pulse.support.record import record

ElementType: TypeAlias = Literal["f32", "f64", "i64", "i32", "u8", "i8", "f16", "bf16"]
FieldCount: TypeAlias = "int | str"
"""A number, or the name of the field that holds it."""
FieldKind: TypeAlias = Literal["operand", "weights", "scales", "number", "real", "numbers", "group", "groups"]
WORD_BYTES = 8
"""The bytes of a word."""
FLOAT_BYTES = 4
"""The bytes of an f32."""
LINE_WORDS = 8
"""The words of a cache line."""


@record
class Spec:
    """The declared properties of a field, in addition to its type.

    kind      what it holds
    element   the type of an operand's elements; None: bytes of any type
    touched   how often each run reads or writes all of it
    written   whether a kernel may write to it
    count     its minimum number of elements, as factors of a product; empty: unknown
    """

    kind: FieldKind
    element: ElementType | None = None
    touched: int = 1
    written: bool = False
    count: tuple[FieldCount, ...] = ()


def starts_line() -> Any:
    """Declare a field that begins a cache line: earlier fields have another writer."""
    return field(metadata={"line": True})


class Fields:
    """The base of classes whose annotations are fields."""

    START: ClassVar[int] = 0
    """The first word."""


@record
class Field:
    """A field of a declaration.

    name           its name
    spec           its declared properties
    word           its first word, without the groups before it
    groups_before  each field of groups before it: the field with their number, and the words of a group
    group          the declaration of a group, if the field is a group or groups
    """

    name: str
    spec: Spec
    word: int
    groups_before: tuple[tuple[str, int], ...] = ()
    group: Any = None

    @cached_property
    def kind(self) -> FieldKind:
        return self.spec.kind


@record
class Layout:
    """The fields of a class in order, and their number of words: whole cache lines, if a field begins one.

    Repeated groups, and numbers up to the end of the memory, are not included.
    """

    fields: dict[str, Field]
    words: int
    has_lines: bool


def evaluate_annotations(declared: Any, annotations: dict[str, Any]) -> dict[str, Any]:
    """Evaluate annotations; only those with strings take time."""
    return (
        annotations
        if all(isinstance(kind, type) for kind in annotations.values())
        else get_type_hints(declared)
    )


def _spec(kind: Any, spec: "Spec | None") -> Spec:
    if spec is not None:
        return spec
    if kind is float:
        return Spec("real")
    return Spec("group") if issubclass(kind, Fields) else Spec("number")


def _round_up_to_line(words: int) -> int:
    return -(-words // LINE_WORDS) * LINE_WORDS


@cache
def layout_of(declared: type[Fields]) -> Layout:
    """Return the layout of a declaration."""
    known_fields: dict[str, Field] = {}
    declared_fields = fields(declared)  # type: ignore[arg-type]
    kinds = evaluate_annotations(
        declared, {declaration.name: declaration.type for declaration in declared_fields}
    )
    word, groups_before, has_lines = declared.START, (), False
    for declaration in declared_fields:
        name, kind = declaration.name, kinds[declaration.name]
        spec = _spec(kind, declaration.metadata.get("spec"))
        group: Any = get_args(kind)[0] if spec.kind == "groups" else kind if spec.kind == "group" else None
        if declaration.metadata.get("line") or (spec.kind == "group" and layout_of(group).has_lines):
            word, has_lines = _round_up_to_line(word), True
        known_fields[name] = Field(name, spec, word, groups_before, group)
        if spec.kind == "groups":
            groups_before = (*groups_before, (str(spec.count[0]), words_of(group)))
        elif spec.kind == "numbers":
            word += sum(count for count in spec.count if isinstance(count, int))
        else:
            word += 1 if group is None else words_of(group)
    words = word - declared.START
    return Layout(known_fields, _round_up_to_line(words) if has_lines else words, has_lines)


@cache
def fields_of(declared: type[Fields]) -> dict[str, Field]:
    """Return the fields of a declaration in order."""
    return layout_of(declared).fields


def words_of(declared: type[Fields]) -> int:
    """Return the number of words of the fields; see ``Layout``."""
    return layout_of(declared).words


def layout_text(declared: type[Fields]) -> str:
    """Describe all fields, including the fields of groups."""
    return " ".join(
        f"{field.name}:{field.kind}:{field.spec.element}@{field.word}{field.groups_before or ''}"
        + (f"({layout_text(field.group)})" if field.group else "")
        for field in fields_of(declared).values()
    )
