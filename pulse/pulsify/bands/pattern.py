"""Values that depend on positions alone, for streams of any length: how they repeat, and their bounds.

A value at positions p0, p1 … is ``sum_a slopes[a] * p_a + rest``. If it repeats, ``rest`` is the same after all
positions have moved by the period together. Numbers are exact: fractions, and floats for infinity.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from math import inf
from typing import Any, TypeAlias, cast

import numpy as np

from pulse.facts import Array
from pulse.support.record import record

Exact: TypeAlias = Array
"""Fractions and infinities; axes of the stream have size 1."""
Interval: TypeAlias = tuple[Exact, Exact]
"""The smallest and the largest value."""
IntervalFunction: TypeAlias = Callable[..., Interval]
"""A function from the intervals of operands to the interval of the result."""


def exact_numbers(value: Array) -> Exact:
    """Return the numbers of an array, exactly."""
    numbers = [
        Fraction(element) if np.isfinite(element) else float(element) for element in value.ravel().tolist()
    ]
    array = np.empty(len(numbers), object)
    array[:] = numbers
    return array.reshape(value.shape)


def _number(value: Any) -> Exact:
    return np.array(value, object)


ANYTHING: Interval = _number(-inf), _number(inf)
NEVER: Interval = _number(-inf), _number(-inf)
"""The interval of masked scores."""
LENGTH = 0
"""A key in place of an axis: the number of rows, which is the size of each stream axis."""
ZERO = _number(Fraction(0))
ONE = _number(Fraction(1))


@record
class PatternExtent:
    """The facts about a mask that runs have shown.

    period    the frames after which it repeats
    distance  no run shows two frames together that are this far apart or farther
    masked    scores at or below this are masked
    """

    period: int
    distance: int
    masked: float


@record(eq=False)
class Pattern:
    """A value at all positions.

    slopes   axis, counted from the last one (-1) -> growth for each step along it; ``LENGTH`` -> growth for each row
             of the stream
    rest     the interval of the rest, at all positions
    bounds   the interval of the value, at all positions
    below    likewise, below the diagonal: the first axis is ahead of the second by more frames than a run has shown
    above    likewise, above the diagonal: the second is ahead of the first
    repeats  whether the rest repeats
    parts    "max" or "min" and the operands, if it is an extreme of values that each repeat
    """

    slopes: Mapping[int, Exact]
    rest: Interval
    bounds: Interval
    below: Interval
    above: Interval
    repeats: bool = True
    parts: "tuple[str, tuple[Pattern, ...]] | None" = None

    @classmethod
    def constant(cls, value: Exact, high: Exact | None = None) -> "Pattern":
        """Return a value that is the same at all positions, or between two numbers everywhere."""
        every = value, value if high is None else high
        return cls({}, every, every, every, every)

    @classmethod
    def unknown(cls, bounds: Interval = ANYTHING) -> "Pattern":
        """Return a value of which only bounds are known."""
        return cls({}, bounds, bounds, bounds, bounds, False)

    @property
    def drift(self) -> Exact:
        """The growth of the value when all positions move by one."""
        return sum((slope for axis, slope in self.slopes.items() if axis != LENGTH), ZERO)

    @property
    def is_steady(self) -> bool:
        """Whether the value itself repeats."""
        return self.repeats and LENGTH not in self.slopes and not np.any(self.drift != 0)

    @property
    def number(self) -> Exact | None:
        """Its value, if it is the same at all positions (one number for each entry of the other axes)."""
        low, high = self.bounds
        return low if np.shape(low) == np.shape(high) and bool(np.all(low == high)) else None


def affine(slopes: Mapping[int, Exact], rest: Interval, distance: int, repeats: bool = True) -> Pattern:
    """Return a value by its slopes and the interval of its rest.

    distance  the smallest distance of two positions in ``below`` and ``above``
    """
    nonzero = {axis: slope for axis, slope in slopes.items() if np.any(slope != 0)}
    axes = sorted(axis for axis in nonzero if axis != LENGTH)
    bounds = _add(rest, _everywhere([nonzero[axis] for axis in axes], nonzero.get(LENGTH, ZERO)))
    below = above = bounds
    if len(axes) == 2 and LENGTH not in nonzero:
        a, b = (nonzero[axis] for axis in axes)
        together = _grow(a + b)
        below = reduce(_add, (together, _grow(a, distance), rest))
        above = reduce(_add, (together, _grow(b, distance), rest))
    return Pattern(nonzero, rest, bounds, below, above, repeats)


def _everywhere(slopes: Sequence[Exact], by_length: Exact) -> Interval:
    """Return the interval of ``sum_a slopes[a] * p_a + by_length * n``, for all ``0 <= p_a < n``."""
    up, down = (
        sum((pick(slope, ZERO) for slope in slopes), ZERO) for pick in (_elementwise_max, _elementwise_min)
    )
    return np.where(down + by_length < 0, -inf, by_length), np.where(up + by_length > 0, inf, by_length)


def _grow(slope: Exact, steps: int = 0) -> Interval:
    """Return the interval of ``slope * n`` for all n from ``steps`` on."""
    start = slope * steps
    return np.where(slope < 0, -inf, start), np.where(slope > 0, inf, start)


def _add(x: Interval, y: Interval) -> Interval:
    """Return the interval of a sum; minus infinity, a masked score, stays."""
    return _plus(x[0], y[0]), _plus(x[1], y[1])


def _plus(x: Exact, y: Exact) -> Exact:
    low = (x == -inf) | (y == -inf)
    return np.where(low, -inf, np.where(low, ZERO, x) + np.where(low, ZERO, y))


def _negate(x: Interval) -> Interval:
    return -x[1], -x[0]


def _multiply(x: Exact, y: Exact) -> Exact:
    is_zero = (x == 0) | (y == 0)
    return np.where(is_zero, ZERO, np.where(is_zero, ONE, x) * np.where(is_zero, ONE, y))


def multiply(x: Interval, y: Interval) -> Interval:
    """Return the interval of a product."""
    corners = [_multiply(a, b) for a in x for b in y]
    return reduce(_elementwise_min, corners), reduce(_elementwise_max, corners)


def _elementwise_min(x: Exact, y: Exact) -> Exact:
    return np.where(x < y, x, y)


def _elementwise_max(x: Exact, y: Exact) -> Exact:
    return np.where(x > y, x, y)


def interval_min(*values: Interval) -> Interval:
    """Return the interval of a minimum; of truth values: whether all are true."""
    return reduce(_elementwise_min, [low for low, _ in values]), reduce(
        _elementwise_min, [high for _, high in values]
    )


def interval_max(*values: Interval) -> Interval:
    """Return the interval of a maximum; of truth values: whether any is true."""
    return reduce(_elementwise_max, [low for low, _ in values]), reduce(
        _elementwise_max, [high for _, high in values]
    )


def union(x: Interval, y: Interval) -> Interval:
    """Return the smallest interval that contains both."""
    return _elementwise_min(x[0], y[0]), _elementwise_max(x[1], y[1])


def magnitude(x: Interval) -> Interval:
    """Return the interval of an absolute value."""
    low, high = x
    outside = _elementwise_max(low, -high)
    return _elementwise_max(outside, ZERO), _elementwise_max(-low, high)


def invert(x: Interval) -> Interval:
    """Return the interval of ``not``."""
    return ONE - x[1], ONE - x[0]


def choose(condition: Interval, x: Interval, y: Interval) -> Interval:
    """Return the interval of ``where``."""
    low, high = union(x, y)
    for always, (a, b) in ((condition[0] == 1, x), (condition[1] == 0, y)):
        low, high = np.where(always, a, low), np.where(always, b, high)
    return low, high


def is_negative(x: Interval) -> Interval:
    """Return the interval of ``x < 0``."""
    return np.where(x[1] < 0, ONE, ZERO), np.where(x[0] < 0, ONE, ZERO)


def is_not_positive(x: Interval) -> Interval:
    """Return the interval of ``x <= 0``."""
    return np.where(x[1] <= 0, ONE, ZERO), np.where(x[0] <= 0, ONE, ZERO)


def is_zero(x: Interval) -> Interval:
    """Return the interval of ``x == 0``."""
    both = (x[0] == 0) & (x[1] == 0)
    return np.where(both, ONE, ZERO), np.where((x[0] <= 0) & (x[1] >= 0), ONE, ZERO)


def is_true(x: Interval) -> Interval:
    """Return the interval of ``x != 0``."""
    return invert(is_zero(x))


def function(interval_function: IntervalFunction, operands: Sequence[Pattern]) -> Pattern:
    """Return a function of each position's own values; it repeats if all operands do."""
    bounds, below, above = (
        interval_function(*(getattr(operand, bound_name) for operand in operands))
        for bound_name in ("bounds", "below", "above")
    )
    return Pattern({}, bounds, bounds, below, above, all(operand.is_steady for operand in operands))


def combination(operands: Sequence[Pattern], signs: Sequence[int], distance: int) -> Pattern:
    """Return a sum of values, each with the sign 1 or -1."""
    for index, summand in enumerate(operands):
        if summand.parts is not None:
            kind, parts = summand.parts
            kind = kind if signs[index] > 0 else {"max": "min", "min": "max"}[kind]
            others = [[*operands[:index], part, *operands[index + 1 :]] for part in parts]
            return extreme(kind, [combination(every, signs, distance) for every in others])
    slopes: dict[int, Exact] = {}
    for summand, sign in zip(operands, signs):
        for axis, slope in summand.slopes.items():
            slopes[axis] = slopes.get(axis, ZERO) + slope * sign

    def total(bound_name: str) -> Interval:
        intervals = cast("list[Interval]", [getattr(operand, bound_name) for operand in operands])
        return reduce(
            _add, (interval if sign > 0 else _negate(interval) for interval, sign in zip(intervals, signs))
        )

    pattern = affine(slopes, total("rest"), distance, all(operand.repeats for operand in operands))
    return _narrow(pattern, total("bounds"), total("below"), total("above"))


def _narrow(pattern: Pattern, bounds: Interval, below: Interval, above: Interval) -> Pattern:
    """Return a pattern narrowed by bounds from another derivation."""

    def intersect(x: Interval, y: Interval) -> Interval:
        return _elementwise_max(x[0], y[0]), _elementwise_min(x[1], y[1])

    return replace(
        pattern,
        bounds=intersect(pattern.bounds, bounds),
        below=intersect(pattern.below, below),
        above=intersect(pattern.above, above),
    )


def scale(x: Pattern, factor: Exact, distance: int) -> Pattern:
    """Return a value times a finite number."""
    if x.parts is not None and np.all(factor > 0):
        kind, parts = x.parts
        return extreme(kind, [scale(part, factor, distance) for part in parts])
    by = factor, factor
    pattern = affine(
        {axis: slope * factor for axis, slope in x.slopes.items()}, multiply(x.rest, by), distance, x.repeats
    )
    return _narrow(pattern, multiply(x.bounds, by), multiply(x.below, by), multiply(x.above, by))


def extreme(kind: str, operands: Sequence[Pattern]) -> Pattern:
    """Return the maximum ("max") or minimum ("min") of values."""
    pattern = function(interval_max if kind == "max" else interval_min, operands)
    if pattern.repeats or not all(operand.repeats for operand in operands):
        return pattern
    return replace(pattern, parts=(kind, tuple(operands)))


def round_down(x: Pattern, period: int, distance: int) -> Pattern:
    """Return the floor of a value."""
    slopes, (low, high) = x.slopes, x.rest
    is_integer = _map_elements(lambda number: Fraction(number).denominator == 1, x.drift * period)
    one = (_number(Fraction(-1)), ZERO)
    repeats = x.repeats and LENGTH not in slopes and bool(np.all(is_integer))
    pattern = affine(slopes, _add((low, high), one), distance, repeats)
    return _narrow(pattern, _floor(x.bounds), _floor(x.below), _floor(x.above))


def _floor(x: Interval) -> Interval:
    def round_down_finite(value: Fraction | float) -> Fraction | float:
        return value if abs(value) == inf else Fraction(value // 1)

    return _map_elements(round_down_finite, x[0]), _map_elements(round_down_finite, x[1])


def _map_elements(run: Callable[[Any], object], value: Exact) -> Exact:
    numbers = np.asarray(value, object)
    array = np.empty(numbers.shape, object)
    array.ravel()[:] = [run(number) for number in numbers.ravel().tolist()]
    return array
