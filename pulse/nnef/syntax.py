"""The text of NNEF as values: documents, fragments, assignments, expressions; and how they are printed."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias, Union

from pulse.support.record import record

MAX_WIDTH = 110
"""Longer statements are written on several lines."""


@record
class Name:
    """An identifier, read as an expression."""

    text: str


@record
class Call:
    """An operator with its arguments.

    operator           its name
    positional, named  the arguments
    type               the text between angle brackets, such as ``integer`` in ``external<integer>``
    """

    operator: str
    positional: tuple["Expression", ...] = ()
    named: tuple[tuple[str, "Expression"], ...] = ()
    type: str = ""


@record
class Unary:
    """``-x``, ``+x`` or ``!x``."""

    sign: str
    operand: "Expression"


@record
class Binary:
    """``x + y`` and similar; ``x in y`` too."""

    left: "Expression"
    sign: str
    right: "Expression"


@record
class Conditional:
    """``value if condition else other``."""

    value: "Expression"
    condition: "Expression"
    other: "Expression"


@record
class Subscript:
    """``values[index]``."""

    values: "Expression"
    index: "Expression"


@record
class Subrange:
    """``values[start:stop]``; an omitted bound is None."""

    values: "Expression"
    start: "Expression | None"
    stop: "Expression | None"


@record
class Comprehension:
    """``[for i in values if condition yield result]``, of one or several loops side by side."""

    loops: tuple[tuple[str, "Expression"], ...]
    condition: "Expression | None"
    result: "Expression"


Literal: TypeAlias = "bool | int | float | str"
Expression: TypeAlias = Union[
    Literal,
    Name,
    Call,
    Unary,
    Binary,
    Conditional,
    Subscript,
    Subrange,
    Comprehension,
    "Items",
    "TupleExpression",
]
Items: TypeAlias = "list[Expression]"
"""``[a, b]``."""
TupleExpression: TypeAlias = "tuple[Expression, ...]"
"""``(a, b)``."""
AssignmentTarget: TypeAlias = "str | list[AssignmentTarget] | tuple[AssignmentTarget, ...]"


@record
class Assignment:
    """``target = value;``, in this line of the text."""

    target: AssignmentTarget
    value: Expression
    line: int = 0


@record
class Parameter:
    """A parameter of a fragment; ``type`` as written, ``default`` None if it is required."""

    name: str
    type: str
    default: Expression | None = None


@record
class Fragment:
    """An operator in terms of others; without ``body`` it is only declared."""

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[tuple[str, str], ...]
    body: tuple[Assignment, ...] | None = None
    generic: str | None = None


@record
class Document:
    """A graph and its preamble.

    name        the name of the graph
    inputs      the identifiers of its inputs
    outputs     the identifiers of its outputs
    body        its assignments
    fragments   the fragments before it
    extensions  the words of each line
    version     the version as written
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    body: tuple[Assignment, ...]
    fragments: tuple[Fragment, ...] = ()
    extensions: tuple[tuple[str, ...], ...] = ()
    version: str = "1.0"

    def text(self) -> str:
        """Return the text of the document."""
        return "\n".join(_document(self)) + "\n"


def expression_text(value: Expression) -> str:
    """Return an expression of names, literals, lists and calls as text."""
    match value:
        case Name():
            return value.text
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _number(value)
        case str():
            return f'"{value}"'
        case list():
            return f"[{', '.join(map(expression_text, value))}]"
        case tuple():
            return f"({', '.join(map(expression_text, value))})"
        case Call():
            return _call(value)
        case _:
            raise TypeError(f"{type(value).__name__} is read, never written")


def _number(value: float) -> str:
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent)}"


def _call(call: Call) -> str:
    arguments = [
        *map(expression_text, call.positional),
        *(f"{name} = {expression_text(value)}" for name, value in call.named),
    ]
    return f"{call.operator}{f'<{call.type}>' if call.type else ''}({', '.join(arguments)})"


def _document(document: Document) -> Iterator[str]:
    yield f"version {document.version};"
    yield ""
    for words in document.extensions:
        yield f"extension {' '.join(words)};"
    if document.extensions:
        yield ""
    for fragment in document.fragments:
        parameters = [f"{parameter.name}: {parameter.type}" for parameter in fragment.parameters]
        yield from _signature(
            f"fragment {fragment.name}", parameters, [f"{name}: {kind}" for name, kind in fragment.results]
        )
        yield from _body(fragment.body or ())
        yield ""
    yield from _signature(f"graph {document.name}", document.inputs, document.outputs)
    yield from _body(document.body)


def _signature(head: str, inputs: Sequence[str], outputs: Sequence[str]) -> Iterator[str]:
    line = f"{head}({', '.join(inputs)}) -> ({', '.join(outputs)})"
    if len(line) <= MAX_WIDTH:
        yield line
        return
    yield f"{head}("
    yield ",\n".join(f"    {name}" for name in inputs)
    yield ") -> ("
    yield ",\n".join(f"    {name}" for name in outputs)
    yield ")"


def _body(body: Sequence[Assignment]) -> Iterator[str]:
    yield "{"
    for assignment in body:
        yield f"    {_target(assignment.target)} = {expression_text(assignment.value)};"
    yield "}"


def _target(target: AssignmentTarget) -> str:
    if isinstance(target, str):
        return target
    inner = ", ".join(map(_target, target))
    return f"[{inner}]" if isinstance(target, list) else f"({inner})"
