"""Elementwise functions of values that depend on positions alone."""

from collections.abc import Sequence

import numpy as np

from pulse.facts import TypedFact
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.pulsify.bands.pattern import (
    ANYTHING,
    NEVER,
    ONE,
    ZERO,
    Interval,
    IntervalFunction,
    Pattern,
    PatternExtent,
    choose,
    combination,
    extreme,
    function,
    interval_max,
    interval_min,
    invert,
    is_negative,
    is_not_positive,
    is_zero,
    magnitude,
    multiply,
    round_down,
    scale,
    union,
)

TESTS: dict[str, IntervalFunction] = {"<": is_negative, "<=": is_not_positive, "=": is_zero}
"""What makes a comparison true -> the test of the first operand minus the second."""
MIRROR = str.maketrans("<>", "><")
"""Of a comparison, what makes it true with its operands exchanged."""
BOUNDS: dict[str, IntervalFunction] = {
    "abs": magnitude,
    "mul": multiply,
    "and": interval_min,
    "or": interval_max,
    "not": invert,
    "where": choose,
}
ANY_OF = {("max", "<"), ("max", "<="), ("min", ">"), ("min", ">=")}
"""An operand is below a maximum if it is below any of its parts; above one if it is above all of them."""


def elementwise(name: str, inputs: Sequence[Pattern], fact: TypedFact, extent: PatternExtent) -> Pattern:
    """Return the pattern of an elementwise function's result, whose fact is ``fact``."""
    distance, period, row = extent.distance, extent.period, ELEMENTWISE[name]
    if row.signs is not None:
        return combination(inputs, row.signs * len(inputs) if row.arity < 0 else row.signs, distance)
    if row.holds_if in TESTS or row.holds_if.translate(MIRROR) in TESTS:
        return _compare(row.holds_if, inputs, extent)
    if name in ("max", "min"):
        return extreme(name, inputs)
    if name == "where":
        return _choose(inputs, extent)
    if name == "relu":
        return extreme("max", [inputs[0], Pattern.constant(ZERO)])
    if name == "floor":
        return round_down(inputs[0], period, distance)
    if name == "ceil":
        negative = round_down(combination(inputs, (-1,), distance), period, distance)
        return combination([negative], (-1,), distance)
    if name in ("mul", "div", "mod"):
        pattern = _combine_with_number(name, inputs, fact, extent)
        if pattern is not None:
            return pattern
    if name == "abs" and np.all(np.asarray(inputs[0].bounds[0] >= 0)):
        return inputs[0]
    bounds = BOUNDS.get(name)
    truth = ZERO, ONE
    return function(
        bounds or (lambda *_: truth if fact.dtype == np.bool_ else ANYTHING),
        inputs,
    )


def _combine_with_number(
    name: str, inputs: Sequence[Pattern], fact: TypedFact, extent: PatternExtent
) -> Pattern | None:
    """Return the product, quotient or remainder of a value and a number."""
    x, number = inputs[0], inputs[1].number
    if name == "mul" and number is None:
        x, number = inputs[1], inputs[0].number
    if number is None or np.isinf(np.asarray(number, np.float64)).any():
        return None
    distance, period = extent.distance, extent.period
    if name == "mul":
        return scale(x, number, distance)
    if np.any(np.asarray(number <= 0)):
        return None
    quotient = scale(x, ONE / number, distance)
    is_integer = np.issubdtype(fact.dtype, np.integer)
    if name == "div":
        if not is_integer:
            return quotient
        return whole_part(quotient, extent)
    floor = round_down(quotient, period, distance)
    remainder = combination([x, scale(floor, number, distance)], (1, -1), distance)
    low, high = ZERO * number, number - ONE if is_integer else number
    bounds = low, high
    if remainder.is_steady:
        return Pattern(remainder.slopes, bounds, bounds, bounds, bounds, remainder.repeats)
    return None


def whole_part(x: Pattern, extent: PatternExtent) -> Pattern:
    """Round toward zero."""
    if np.all(np.asarray(x.bounds[0] >= 0)):
        return round_down(x, extent.period, extent.distance)

    def truncate(interval: Interval) -> Interval:
        return interval[0] - ONE, interval[1] + ONE

    return function(truncate, [x])


def _compare(holds_if: str, inputs: Sequence[Pattern], extent: PatternExtent) -> Pattern:
    for index, operand in enumerate(inputs):
        if operand.parts is not None and holds_if != "=":
            comparison = holds_if if index else holds_if.translate(MIRROR)
            extremum, parts = operand.parts
            patterns = [_compare(comparison, [inputs[1 - index], part], extent) for part in parts]
            return function(interval_max if (extremum, comparison) in ANY_OF else interval_min, patterns)
    signs, test = ((-1, 1), holds_if.translate(MIRROR)) if ">" in holds_if else ((1, -1), holds_if)
    return _fold_constant(function(TESTS[test], [combination(inputs, signs, extent.distance)]))


def _choose(inputs: Sequence[Pattern], extent: PatternExtent) -> Pattern:
    """Return the choice between two values that grow equally, or one of which is masked."""
    condition, x, y = inputs
    for always, branch in ((condition.bounds[0] == 1, x), (condition.bounds[1] == 0, y)):
        if np.all(always):
            return branch
    pattern = function(choose, inputs)
    if pattern.repeats or not condition.is_steady or not (x.repeats and y.repeats):
        return pattern
    for one, other in ((x, y), (y, x)):
        hidden = other.number is not None and np.all(np.asarray(other.bounds[1] <= extent.masked))
        if hidden or _have_same_slopes(one, other):
            rest = union(one.rest, NEVER if hidden else other.rest)
            return Pattern(one.slopes, rest, pattern.bounds, pattern.below, pattern.above)
    return pattern


def _fold_constant(pattern: Pattern) -> Pattern:
    """Mark a truth value that is the same everywhere as repeating, whatever its operands are."""
    return pattern if pattern.number is None else Pattern.constant(pattern.bounds[0])


def _have_same_slopes(x: Pattern, y: Pattern) -> bool:
    return all(
        np.all(x.slopes.get(axis, ZERO) == y.slopes.get(axis, ZERO)) for axis in {*x.slopes, *y.slopes}
    )
