"""Joining of an output and the input that reads it: the sizes of one in terms of the other's symbols."""

from collections.abc import Mapping

from pulse.dim import Symbol, TDim
from pulse.errors import FactError
from pulse.facts import TypedFact
from pulse.infer.equation import solve


def require_compatible(given: TypedFact, wanted: TypedFact) -> None:
    """Raise FactError where type, rank or a size that does not depend on lengths differs."""
    if given.dtype != wanted.dtype:
        raise FactError("the types differ")
    if given.rank != wanted.rank:
        raise FactError(
            f"one has {given.rank} axes, the other {wanted.rank}; unsqueeze of pulse.front adds an axis of size 1, "
            "squeeze takes one away"
        )
    for axis, (size, other) in enumerate(zip(given.shape, wanted.shape)):
        if not other.symbols and size != other and not size.prove_eq(other).yes:
            raise FactError(f"axis {axis} is {size} in one and {other} in the other")


def solve_symbols(given: TypedFact, wanted: TypedFact, known: Mapping[Symbol, TDim]) -> dict[Symbol, TDim]:
    """The symbols of an input, from the shape of its wire.

    given   of the wire, in the terms of the chain
    wanted  of the input, in the terms of its model
    known   symbols of the model that are known already
    Raises  FactError: no length fits
    """
    values = dict(known)
    left = [(axis, pair) for axis, pair in enumerate(zip(given.shape, wanted.shape)) if pair[1].symbols]
    while left:
        ready = [each for each in left if len(each[1][1].symbols - values.keys()) <= 1]
        if not ready:
            break
        ready.sort(key=lambda each: len(each[1][1].terms))
        chosen = ready[0]
        left.remove(chosen)
        axis, (size, expression) = chosen
        unknown = expression.symbols - values.keys()
        if unknown:
            (symbol,) = unknown
            value = _value(size, expression, symbol, values)
            if value is None:
                raise FactError(
                    f"axis {axis} is {size} in one and {expression} in the other, and no {symbol.name} makes them "
                    "equal for every length"
                )
            values[symbol] = value
    return values


def _value(size: TDim, expression: TDim, symbol: Symbol, values: Mapping[Symbol, TDim]) -> TDim | None:
    if expression == TDim.of(symbol):
        return size
    others = {other: value for other, value in values.items() if other in expression.symbols}
    left = expression.subs(others)
    return solve(left, size, symbol) or _same(size, left, symbol)


def _same(size: TDim, expression: TDim, symbol: Symbol) -> TDim | None:
    """The symbol of a size in whose place ``symbol`` is the same expression, as in T//256+1, which many T solve."""
    names = sorted(size.symbols, key=lambda other: (other.name != symbol.name, other.name))
    values = (TDim.of(other) for other in names)
    return next((value for value in values if expression.subs({symbol: value}) == size), None)
