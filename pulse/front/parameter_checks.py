"""Checks of parameters; the error for a bad value states in one line what is allowed."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from pulse.errors import InputError

T = TypeVar("T")


def options_from(options_class: type[T], parameters: Mapping[str, Any]) -> T:
    """Return a record of the parameters of a function that it has as fields, given the function's ``locals()``."""
    make_options: Any = options_class
    return make_options(**{field.name: parameters[field.name] for field in fields(make_options)})


def require_count(function: str, name: str, value: object, minimum: int = 1, maximum: int = 1 << 24) -> int:
    """Return a value that is an integer in a range. Raises InputError: it is not."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InputError(f"{function}: {name}={value!r} must be an integer from {minimum} to {maximum}")
    return value


def require_number(
    function: str,
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    above: bool = False,
) -> float:
    """Return a value that is a finite number; ``above``: larger than ``low``. Raises InputError: it is not."""
    real = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not math.isfinite(real) or not low <= real <= high or (above and real == low):
        lower_text = "" if low == -math.inf else f" above {low:g}" if above else f" of at least {low:g}"
        upper_text = "" if high == math.inf else f"{' and' if lower_text else ''} at most {high:g}"
        raise InputError(f"{function}: {name}={value!r} must be a finite number{lower_text}{upper_text}")
    return real


def require_flag(function: str, name: str, value: object) -> bool:
    """Return an option that is True or False. Raises InputError: another value."""
    if not isinstance(value, bool):
        raise InputError(f"{function}: {name}={value!r} must be True or False")
    return value


def require_choice(function: str, name: str, value: object, allowed: Iterable[str]) -> str:
    """Return a value that is one of some names. Raises InputError: it is not."""
    names = list(allowed)
    if not isinstance(value, str) or value not in names:
        raise InputError(f"{function}: {name}={value!r} must be one of {', '.join(map(repr, names))}")
    return value
