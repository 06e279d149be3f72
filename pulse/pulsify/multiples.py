"""A way out for a model that cannot be streamed over T frames: it may stream if T is always a multiple of a number."""

from collections.abc import Iterator
from math import lcm

from pulse.declutter.driver import declutter
from pulse.declutter.interpolation import with_interpolation
from pulse.dim import Symbol, SymbolScope, TDim
from pulse.dim.atoms import Div
from pulse.dim.tdim import Atom
from pulse.errors import PulseError
from pulse.ops.source import Source
from pulse.substitution import Terms
from pulse.support.wording import spell
from pulse.typed import TypedNetwork

MAX_MULTIPLE = 1 << 16
"""The largest number that is tried."""


def in_multiples(model: TypedNetwork, symbol: Symbol) -> tuple[int, TypedNetwork] | None:
    """Return a number by which all divisions of a model's lengths by constants are exact, and the model of multiples.

    It takes the largest multiple of the number that is at most the symbol. None if there are no divisions, or if that
    does not fit.
    """
    dims = (dim for node in model.graph.nodes for outlet in node.outputs for dim in outlet.fact.shape)
    divisors = {divisor for dim in set(dims) for divisor in _divisors(dim, symbol)}
    multiple = lcm(*divisors)
    if not 1 < multiple <= MAX_MULTIPLE:
        return None
    scope = SymbolScope()
    terms = Terms(scope, {symbol: TDim.of(scope.symbol(symbol.name)) // multiple * multiple})
    try:
        terms.assume(model.scope)
        return multiple, declutter(with_interpolation(terms.model(model)))
    except PulseError:  # the advice is left out; the refusal of the model itself has been made
        return None


def advice_for_multiple(model: TypedNetwork, symbol: Symbol, multiple: int) -> str:
    """Return how a user declares that a symbol is a multiple of a number."""
    frames = TDim.of(symbol) // multiple * multiple
    facts = {node.name: node.outputs[0].fact for node in model.graph.nodes if isinstance(node.op, Source)}
    shapes = {
        name: ",".join(str(dim.subs({symbol: frames})) for dim in fact.shape)
        for name, fact in facts.items()
        if fact.symbolic_axes(symbol)
    }
    return f"it streams if {symbol.name} is always a multiple of {multiple}: {spell('inputs', shapes)}"


def _divisors(dim: TDim, symbol: Symbol) -> Iterator[int]:
    """Yield what a length of the symbol is divided by."""
    for monomial, _ in dim.terms:
        for atom in monomial:
            yield from _divisors_of_atom(atom, symbol)


def _divisors_of_atom(atom: Atom, symbol: Symbol) -> Iterator[int]:
    if symbol not in atom.symbols:
        return
    if isinstance(atom, Div):
        yield atom.k
    for inner in atom.args:
        yield from _divisors(inner, symbol)
