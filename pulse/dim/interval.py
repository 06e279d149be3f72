"""Cheap bounds for the constructors: interval arithmetic over a linear relaxation of quotients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from math import lcm
from typing import NamedTuple

from pulse.dim.atoms import Choice, Div, Max, Min
from pulse.dim.tdim import Atom, DimInterval, Monomial, Symbol, TDim

ANY: DimInterval = (None, None)


class Relaxed(NamedTuple):
    """den * value = sum(coefficient * monomial) + e with low <= e <= high; no monomial contains a quotient."""

    den: int
    terms: dict[Monomial, int]
    low: int
    high: int


def interval(dim: TDim) -> DimInterval:
    """Return the smallest and the largest value, from the symbols' own ranges; None if unknown."""
    if dim.scope is None:
        return dim.const, dim.const
    cache = dim.scope.cache.intervals
    bounds = cache.get(dim)
    if bounds is None:
        bounds = meet(_bound_linear(dim.terms, dim.const, dim.const, 1), _relaxed_interval(dim))
        cache[dim] = bounds
    return bounds


def certainly_ge(dim: TDim) -> bool:
    """Return whether the intervals show dim >= 0; False means unknown."""
    low, _ = interval(dim)
    if low is not None and low >= 0:
        return True
    if dim.scope is None:
        return False
    for premise in dim.scope.joint:
        if premise.symbols & dim.symbols:
            low, _ = interval(dim - premise)
            if low is not None and low >= 0:
                return True
    return False


def meet(left: DimInterval, right: DimInterval) -> DimInterval:
    """Return the intersection of two intervals."""
    low = left[0] if right[0] is None else right[0] if left[0] is None else max(left[0], right[0])
    high = left[1] if right[1] is None else right[1] if left[1] is None else min(left[1], right[1])
    return low, high


def relax(dim: TDim) -> Relaxed:
    """Replace floor(N/k) by (N - e)/k with 0 <= e < k, at every depth."""
    total = Relaxed(1, {}, dim.const, dim.const)
    for monomial, coefficient in dim.terms:
        total = _plus(total, _relax_monomial(monomial), coefficient)
    return total


def _relax_monomial(monomial: Monomial) -> Relaxed:
    atom = monomial[0]
    if len(monomial) > 1 or not isinstance(atom, Div):
        return Relaxed(1, {monomial: 1}, 0, 0)
    inner = relax(atom.num)
    return Relaxed(inner.den * atom.k, inner.terms, inner.low - (atom.k - 1) * inner.den, inner.high)


def _plus(left: Relaxed, right: Relaxed, coefficient: int) -> Relaxed:
    den = lcm(left.den, right.den)
    a, b = den // left.den, den // right.den * coefficient
    terms = {monomial: a * c for monomial, c in left.terms.items()}
    for monomial, c in right.terms.items():
        terms[monomial] = terms.get(monomial, 0) + b * c
    low, high = (b * right.low, b * right.high) if b > 0 else (b * right.high, b * right.low)
    return Relaxed(den, terms, a * left.low + low, a * left.high + high)


def _relaxed_interval(dim: TDim) -> DimInterval:
    if not any(len(m) == 1 and isinstance(m[0], Div) for m, _ in dim.terms):
        return ANY
    den, terms, low, high = relax(dim)
    return _bound_linear(tuple(terms.items()), low, high, den)


def _bound_linear(
    terms: tuple[tuple[Monomial, int], ...], low: int | None, high: int | None, den: int
) -> DimInterval:
    for monomial, coefficient in terms:
        if coefficient:
            lower, upper = (
                _monomial_interval(monomial) if coefficient > 0 else _monomial_interval(monomial)[::-1]
            )
            low = None if low is None or lower is None else low + coefficient * lower
            high = None if high is None or upper is None else high + coefficient * upper
            if low is None and high is None:
                break
    return None if low is None else -(-low // den), None if high is None else high // den


def _monomial_interval(monomial: Monomial) -> DimInterval:
    if len(monomial) == 1:
        return _atom_interval(monomial[0])
    total: DimInterval = (1, 1)
    for atom, repeats in groupby(monomial):
        power = len(list(repeats))
        single = _atom_interval(atom)
        factor = single
        for _ in range(power - 1):
            factor = _multiply(factor, single)
        total = _multiply(total, meet(factor, (0, None)) if power % 2 == 0 else factor)
    return total


def _multiply(left: DimInterval, right: DimInterval) -> DimInterval:
    if left == (0, 0) or right == (0, 0):
        return 0, 0
    (a, b), (c, d) = left, right
    if a is not None and b is not None and c is not None and d is not None:
        corners = (a * c, a * d, b * c, b * d)
        return min(corners), max(corners)
    if a is not None and a >= 0 and c is not None and c >= 0:
        return a * c, None
    return ANY


def _atom_interval(atom: Atom) -> DimInterval:
    match atom:
        case Symbol():
            return atom.scope.ranges.get(atom, ANY)
        case Div():
            low, high = interval(atom.num)
            return None if low is None else low // atom.k, None if high is None else high // atom.k
        case Choice():
            lows, highs = zip(*map(interval, atom.options), strict=True)
            return (
                _extreme(max, lows, strict=False)
                if isinstance(atom, Max)
                else _extreme(min, lows, strict=True),
                _extreme(min, highs, strict=False)
                if isinstance(atom, Min)
                else _extreme(max, highs, strict=True),
            )
        case _:
            return 0, 1


def _extreme(
    pick: Callable[[Iterable[int]], int], values: tuple[int | None, ...], strict: bool
) -> int | None:
    """Return the smallest or the largest of the known values; if strict, None unless all are known."""
    numbers = [value for value in values if value is not None]
    return None if not numbers or (strict and len(numbers) < len(values)) else pick(numbers)
