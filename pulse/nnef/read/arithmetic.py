"""Arithmetic evaluated while a document is read: on numbers, truth values, lists and dims."""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

from pulse.nnef.read.node import NnefValue, NnefWire

MAX_LIST_ITEMS = 1 << 16
"""How long a list of the text may become."""
OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
"""Operators with the same meaning in NNEF and Python."""
SIZE_FUNCTIONS = frozenset({"length_of", "range_of", "shape_of", "scalar", "integer", "logical", "string"})
"""Functions of the language itself."""


def apply_operator(left: Any, sign: str, right: Any) -> NnefValue:
    """Return a binary operator.

    Raises TypeError, ValueError, ZeroDivisionError, OverflowError, DimError: it has no result for these operands
    """
    if sign == "in":
        return left in right
    if sign in ("&&", "||"):
        if not isinstance(left, bool) or not isinstance(right, bool):
            raise TypeError("expected booleans")
        return left and right if sign == "&&" else left or right
    if sign == "*" and _repeated_length(left, right) > MAX_LIST_ITEMS:
        raise ValueError(f"a list is longer than {MAX_LIST_ITEMS}")
    if sign == "/":
        return _quotient(left, right)
    if sign == "^":
        return _power(left, right)
    return _require_64_bits(OPERATORS[sign](left, right))


def apply_function(function: str, value: NnefValue) -> NnefValue | None:
    """Return a function of ``SIZE_FUNCTIONS``; None if it has no value here."""
    if function in ("length_of", "range_of") and isinstance(value, list | tuple | str):
        return len(value) if function == "length_of" else [*range(len(value))]
    if function == "shape_of" and isinstance(value, NnefWire) and None not in value.sizes:
        return [size for size in value.sizes if size is not None]
    if function == "string" and isinstance(value, bool | int | float | str):
        return str(value)
    if not isinstance(value, bool | int | float):
        return None
    if function == "scalar":
        return float(value)
    if function == "integer" and math.isfinite(value):
        return int(value)
    return bool(value) if function == "logical" else None


def _repeated_length(left: Any, right: Any) -> int:
    """Return the length of a list that is repeated; 0 of numbers."""
    pairs = ((left, right), (right, left))
    return max(
        (len(cast("list[Any]", items)) * times for items, times in pairs if isinstance(items, list | str)),
        default=0,
    )


def _quotient(left: Any, right: Any) -> NnefValue:
    """Return the quotient of floats; of integers and lengths its floor."""
    if isinstance(left, float) or isinstance(right, float):
        return float(left) / float(right)
    quotient: NnefValue = left // right
    return quotient


def _power(left: Any, right: Any) -> NnefValue:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise TypeError("numbers are expected")
    if isinstance(left, int) and isinstance(right, int) and 0 <= right < 64 and abs(left) < 1 << 16:
        return _require_64_bits(left**right)
    power = float(left) ** float(right)
    if isinstance(power, complex):
        raise ValueError("a root of a negative number")
    return power


def _require_64_bits(value: Any) -> NnefValue:
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise OverflowError("more than 64 bits")
    return value
