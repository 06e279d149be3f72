"""The signatures of operators: the names of their arguments in order, and defaults."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pulse.errors import LoadError
from pulse.nnef.syntax import Expression, Fragment, Unary
from pulse.support.record import record

if TYPE_CHECKING:
    from pulse.nnef.read.node import NnefValue

WINDOW = "border='constant' padding=[] stride=[] dilation=[]"
"""The arguments of all operators with windows."""


@record(eq=False)
class OperatorSignature:
    """Names in the order of positional arguments; those with defaults may be omitted."""

    names: tuple[str, ...]
    defaults: "Mapping[str, NnefValue]"


def signature(text: str) -> OperatorSignature:
    """Return the signature in a text of names and ``name=default``, blanks between; defaults are Python's literals."""
    from ast import literal_eval

    names: list[str] = []
    defaults: dict[str, NnefValue] = {}
    for parameter in text.split():
        name, _, default = parameter.partition("=")
        names.append(name)
        if default:
            defaults[name] = literal_eval(default)
    return OperatorSignature(tuple(names), defaults)


SIGNATURES: dict[str, OperatorSignature] = {
    "external": signature("shape"),
    "tract_core_external": signature("shape datum_type='F32'"),
    "variable": signature("shape label"),
    "tract_core_scan": signature(
        "body scan full state output seq_length=-1 skip=0 reset_every_turn=False external_state=False"
    ),
}
"""Operator -> signature; ``reads`` adds the operators that it registers."""


def signature_of(fragment: Fragment) -> OperatorSignature:
    """Return the signature of a fragment's parameters. Raises LoadError: a default is not a literal."""
    defaults: dict[str, NnefValue] = {
        parameter.name: _literal(parameter.default, fragment.name)
        for parameter in fragment.parameters
        if parameter.default is not None
    }
    return OperatorSignature(tuple(parameter.name for parameter in fragment.parameters), defaults)


def _literal(value: Expression, fragment: str) -> "NnefValue":
    match value:
        case bool() | int() | float() | str():
            return value
        case list():
            return [_literal(item, fragment) for item in value]
        case tuple():
            return tuple(_literal(item, fragment) for item in value)
        case Unary(sign="-", operand=int() | float() as number):
            return -number
        case _:
            raise LoadError(
                f"the fragment {fragment} has a default that is not a literal; give a number or a list"
            )
