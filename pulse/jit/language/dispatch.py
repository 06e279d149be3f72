"""Dispatchers and choosers: apply one elementwise function of a table, chosen by a number at run time.

A function of a table names its arguments: ``a b c`` are elements, ``p q`` parameters. A dispatcher applies it along
registers: compiled, it is one switch over loops into which the functions are inlined. A chooser applies it to values.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pulse.jit.language.declared import (
    UNREGISTERED,
    Chooser,
    Dispatcher,
    F,
    FloatType,
    Outlined,
    PythonFunction,
)
from pulse.jit.language.simd import LANES, Vector, vload, vstore
from pulse.jit.rows.pointer import Pointer

ARGUMENT_NAMES = ("a", "b", "c", "p", "q")
ElementwiseApply = Callable[[int, Pointer, Pointer, Pointer, Pointer, int, float, float], None]
ElementwiseChoice = Callable[[int, Vector, "Vector | float", float, float], Vector]


def names_of(function: PythonFunction) -> list[str]:
    """Return the parameter names of a function of a table."""
    names = list(inspect.signature(function).parameters)
    assert set(names) <= set(ARGUMENT_NAMES), f"parameters {names}, expected some of {ARGUMENT_NAMES}"
    return names


def _load(p: Pointer, i: int, lanes: bool) -> "Vector | np.float64":
    return vload(p, i) if lanes else np.float64(p[i])


def dispatcher(
    name: str, rows: Sequence[tuple[PythonFunction, bool]], element: FloatType
) -> ElementwiseApply:
    """Make ``apply(code, d, a, b, c, count, p, q)``: ``d[i] = rows[code](a[i], …)`` for i < count.

    A row is a function and whether it takes 16 lanes (``count`` is rounded up to lanes) or one float64.
    """

    def apply(
        code: int, d: Pointer, a: Pointer, b: Pointer, c: Pointer, count: int, p: float, q: float
    ) -> None:
        function, lanes = rows[code]
        sources: dict[str, Any] = dict(zip(ARGUMENT_NAMES, (a, b, c, p, q)))
        names = names_of(function)
        for i in range(0, count, LANES if lanes else 1):
            values = [sources[n] if n in "pq" else _load(sources[n], i, lanes) for n in names]
            result = function(*values)
            if lanes:
                vstore(d, i, result)
            else:
                d[i] = result

    apply.__name__ = apply.__qualname__ = name
    UNREGISTERED.append(Dispatcher(apply, rows, element))
    return apply


def chooser(name: str, functions: Sequence[PythonFunction]) -> ElementwiseChoice:
    """Make ``choose(code, a, b, p, q)``: the result of ``functions[code]``; of the last one if it has another code."""

    def choose(code: int, a: Vector, b: "Vector | float", p: float, q: float) -> Vector:
        function = functions[code if 0 <= code < len(functions) else -1]
        values: dict[str, Any] = {"a": a, "b": b, "p": p, "q": q}
        return function(*(values[n] for n in names_of(function)))

    choose.__name__ = choose.__qualname__ = name
    UNREGISTERED.append(Chooser(choose, functions))
    return choose


def outline(function: F) -> F:
    """Declare a helper without a result that is not inlined, outside of its callers' loops and registers."""
    UNREGISTERED.append(Outlined(function))
    return function
