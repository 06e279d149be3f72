"""Join an output to the input that reads it: solve the symbols of the input for the sizes of the output."""

from collections.abc import Mapping

from pulse.dim import Symbol, TDim
from pulse.errors import FactError
from pulse.facts import TypedFact
from pulse.infer.equation import solve


def require_compatible(source: TypedFact, target: TypedFact) -> None:
    """Raise FactError if type, rank or a size that does not depend on lengths differs."""
    if source.dtype != target.dtype:
        raise FactError("the types differ")
    if source.rank != target.rank:
        raise FactError(
            f"one has {source.rank} axes, the other {target.rank}; unsqueeze of pulse.front adds an axis of size 1, "
            "squeeze removes one"
        )
    for axis, (size, other) in enumerate(zip(source.shape, target.shape)):
        if not other.symbols and size != other and not size.prove_eq(other).yes:
            raise FactError(f"axis {axis} is {size} in one and {other} in the other")


def solve_symbols(source: TypedFact, target: TypedFact, lengths: Mapping[Symbol, TDim]) -> dict[Symbol, TDim]:
    """Return the symbols of an input, from the shape of its wire.

    source   type and shape of the wire, in the terms of the chain
    target   type and shape of the input, in the terms of its model
    lengths  values of the known symbols
    Raises   FactError: no length fits
    """
    values = dict(lengths)
    unsolved = [(axis, pair) for axis, pair in enumerate(zip(source.shape, target.shape)) if pair[1].symbols]
    while unsolved:
        ready = [candidate for candidate in unsolved if len(candidate[1][1].symbols - values.keys()) <= 1]
        if not ready:
            break
        equation = min(ready, key=lambda candidate: len(candidate[1][1].terms))
        unsolved.remove(equation)
        axis, (size, expression) = equation
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
    remainder = expression.subs(others)
    return solve(remainder, size, symbol) or _symbol_of_same_size(size, remainder, symbol)


def _symbol_of_same_size(size: TDim, expression: TDim, symbol: Symbol) -> TDim | None:
    """Return the symbol of ``size`` for which the expression equals ``size``; None if there is none.

    It is T for T//256+1. ``solve`` does not find it, since other values have the same result.
    """
    names = sorted(size.symbols, key=lambda other: (other.name != symbol.name, other.name))
    values = (TDim.of(other) for other in names)
    return next((value for value in values if expression.subs({symbol: value}) == size), None)
