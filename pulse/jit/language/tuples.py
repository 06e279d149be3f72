"""Tuples of equal things, such as rows, sums or states, of which each is computed by the same code.

``codegen.tuples`` defines these functions in compiled code, where lengths are part of the types: nothing is a loop.
"""

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, TypeVar, cast

R = TypeVar("R")


def each(function: Callable[..., R], *arguments: Any) -> tuple[R, ...]:
    """Return the results of a function for each element of the arguments that are tuples; others are the same for all.

    The calls are in the order of the elements. Raises ValueError: no argument is a tuple, or their lengths differ.
    """
    tuples = [cast("tuple[Any, ...]", argument) for argument in arguments if isinstance(argument, tuple)]
    (length,) = set(map(len, tuples))
    columns: list[Iterable[Any]] = [
        argument if isinstance(argument, tuple) else repeat(argument, length) for argument in arguments
    ]
    return tuple(map(function, *columns))


def copies(value: R, like: tuple[Any, ...]) -> tuple[R, ...]:
    """Return a tuple of one value, as long as another tuple; ``each`` passes all of a tuple if it gets copies of it."""
    return (value,) * len(like)


def indices(values: tuple[Any, ...]) -> tuple[int, ...]:
    """Return 0, 1 … up to the last index of a tuple."""
    return tuple(range(len(values)))
