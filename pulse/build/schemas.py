"""The schemas of ONNX operators: their inputs, outputs and attributes."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from onnx import defs

from pulse.errors import InputError
from pulse.support.naming import require_name

OPSET = 22
"""The version of the default domain that nodes written by hand are of."""

_ATTRIBUTE_TYPES = defs.OpSchema.AttrType


@cache
def schema_of(domain: str, op_type: str) -> "defs.OpSchema | None":
    """Return the schema of an operator; None if ONNX has none."""
    try:
        return defs.get_schema(op_type, OPSET if domain in ("", "ai.onnx") else 1, domain)
    except defs.SchemaError:
        return None


def max_inputs(domain: str, op_type: str) -> int:
    """Return the most inputs of an operator, omitted ones included; 0: any number, or unknown."""
    schema = schema_of(domain, op_type)
    variadic = defs.OpSchema.FormalParameterOption.Variadic
    if schema is None or any(formal.option == variadic for formal in schema.inputs):
        return 0
    return schema.max_input


def check_attributes(
    domain: str, op_type: str, attributes: Mapping[str, Any], location: str
) -> dict[str, Any]:
    """Return the attributes in the types of the operator's schema; None means unset.

    For an operator that is not in ONNX, they stay. Raises InputError: one is unknown, missing or of another type
    """
    values = {name: value for name, value in attributes.items() if value is not None}
    schema = schema_of(domain, op_type)
    if schema is None:
        return values
    declarations = schema.attributes
    for name in values:
        require_name("attribute", name, sorted(declarations), InputError, location)
    for name, declaration in declarations.items():
        if declaration.required and name not in values:
            raise InputError(f"{location}: the attribute {name} is required")
    return {name: _convert(declarations[name], value, location) for name, value in values.items()}


def _convert(declaration: "defs.OpSchema.Attribute", value: object, location: str) -> object:
    if declaration.type not in _CONVERSIONS:
        raise InputError(
            f"{location}: the attribute {declaration.name} is a graph; read such a node from a file"
        )
    what, convert = _CONVERSIONS[declaration.type]
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{location}: the attribute {declaration.name} must be {what}, not {value!r}"
        ) from None


def _integer(value: Any) -> int:
    if isinstance(value, str | float) and not float(value).is_integer():
        raise TypeError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, str):
        raise TypeError
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _as_list(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        raise TypeError
    return list(value)


def _array(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype == object:
        raise TypeError
    return array


_Conversion: TypeAlias = Callable[[Any], object]


def _each(convert: _Conversion) -> _Conversion:
    return lambda value: [convert(item) for item in _as_list(value)]


_CONVERSIONS: Mapping[object, tuple[str, _Conversion]] = {
    _ATTRIBUTE_TYPES.INT: ("an integer", _integer),
    _ATTRIBUTE_TYPES.FLOAT: ("a number", _number),
    _ATTRIBUTE_TYPES.STRING: ("text", _text),
    _ATTRIBUTE_TYPES.INTS: ("integers", _each(_integer)),
    _ATTRIBUTE_TYPES.FLOATS: ("numbers", _each(_number)),
    _ATTRIBUTE_TYPES.STRINGS: ("texts", _each(_text)),
    _ATTRIBUTE_TYPES.TENSOR: ("an array", _array),
}
"""Kind of an attribute -> its name, and its value in the type that readers of nodes expect."""
