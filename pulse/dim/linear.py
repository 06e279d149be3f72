"""Ranges of a linear form under linear inequalities over the integers, by Fourier-Motzkin elimination."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import gcd
from typing import TypeAlias

LinearSum: TypeAlias = tuple[dict[Hashable, int], int]
"""sum(coefficient * variable) + const; a premise states that it is >= 0."""

MAX_INEQUALITIES = 160
"""Maximum number of inequalities after an elimination; beyond it they are dropped, which only widens the answer."""
_GOAL = object()


def value_range(goal: LinearSum, premises: Iterable[LinearSum]) -> tuple[int | None, int | None] | None:
    """Return bounds of the goal where all premises are >= 0; None if no integers satisfy them.

    The bounds are exact for one variable and sound for more: elimination is over the rationals, with each row
    rounded to integers.
    """
    terms, const = goal
    above: LinearSum = ({_GOAL: 1, **{v: -c for v, c in terms.items()}}, -const)
    below: LinearSum = ({_GOAL: -1, **terms}, const)
    system = _tighten((*premises, above, below))
    while system is not None:
        variable = _cheapest_variable(system)
        if variable is None:
            return _goal_bounds(system)
        system = _eliminate(variable, system)
    return None


_System: TypeAlias = dict[frozenset[tuple[Hashable, int]], int]


def _tighten(rows: Iterable[LinearSum]) -> _System | None:
    """Divide rows by their common factors and keep the strongest of parallel ones; None if one is never satisfied."""
    system: _System = {}
    for terms, const in rows:
        terms = {v: c for v, c in terms.items() if c}
        if not terms:
            if const < 0:
                return None
            continue
        shared = gcd(*terms.values())
        key = frozenset((v, c // shared) for v, c in terms.items())
        system[key] = min(system.get(key, const // shared), const // shared)
    for key, const in system.items():
        opposite = system.get(frozenset((v, -c) for v, c in key))
        if opposite is not None and const + opposite < 0:
            return None
    return system


def _cheapest_variable(system: _System) -> Hashable | None:
    """Return the variable, other than the goal, whose elimination makes the fewest rows."""
    signs: dict[Hashable, list[int]] = {}
    for key in system:
        for variable, coefficient in key:
            if variable is not _GOAL:
                signs.setdefault(variable, [0, 0])[coefficient > 0] += 1
    return min(signs, key=lambda v: signs[v][0] * signs[v][1], default=None)


def _eliminate(variable: Hashable, system: _System) -> _System | None:
    rows: list[LinearSum] = []
    above: list[tuple[dict[Hashable, int], int]] = []
    below: list[tuple[dict[Hashable, int], int]] = []
    for key, const in system.items():
        terms = dict(key)
        group = rows if variable not in terms else above if terms[variable] > 0 else below
        group.append((terms, const))
    if len(rows) + len(above) * len(below) <= MAX_INEQUALITIES:
        rows.extend(_cancel(variable, a, b) for a in above for b in below)
    # past the limit, drop the rows: fewer premises only widen the answer
    return _tighten(rows)


def _cancel(variable: Hashable, above: LinearSum, below: LinearSum) -> LinearSum:
    a, b = -below[0][variable], above[0][variable]
    terms = {v: a * c for v, c in above[0].items()}
    for v, c in below[0].items():
        terms[v] = terms.get(v, 0) + b * c
    return terms, a * above[1] + b * below[1]


def _goal_bounds(system: _System) -> tuple[int | None, int | None]:
    low = high = None
    for key, const in system.items():
        ((_, coefficient),) = key
        if coefficient > 0:
            low = -const
        else:
            high = const
    return low, high
