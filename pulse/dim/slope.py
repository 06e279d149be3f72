"""The growth of a dim as one symbol goes to +infinity and the others stay fixed."""

from __future__ import annotations

from fractions import Fraction

from pulse.dim.atoms import Broadcast, Choice, Div, Eq, Ge, Max, Min
from pulse.dim.canonical import rebuild, replace_atoms
from pulse.dim.tdim import Atom, Symbol, TDim
from pulse.errors import DimError


def slope(dim: TDim, symbol: Symbol) -> Fraction:
    """Return growth per unit of symbol. Raises DimError: the dim is not eventually linear in it."""
    degree, rate = _growth(_resolve_at_infinity(dim, symbol), symbol)
    if degree > 1:
        raise DimError(f"{dim} grows like {symbol}^{degree}, so it has no slope in {symbol}")
    return rate


def _growth(dim: TDim, symbol: Symbol) -> tuple[int, Fraction]:
    """Return (degree, rate): dim is rate * symbol^degree + lower powers; rate 0 for a bounded dim."""
    rates: dict[int, Fraction] = {1: Fraction(0)}
    for monomial, coefficient in dim.terms:
        degree, rate, steady = 0, Fraction(coefficient), True
        for atom in monomial:
            atom_degree, atom_rate = _atom_growth(atom, symbol)
            degree += atom_degree
            rate *= atom_rate
            steady = steady and atom_degree > 0
        if degree and not steady:
            raise DimError(f"{dim} has no fixed slope in {symbol}: it depends on the factor of {symbol}")
        if degree:
            rates[degree] = rates.get(degree, Fraction(0)) + rate
    degree = max(rates)
    if degree > 1 and not rates[degree]:
        raise DimError(f"{dim} has no known slope in {symbol}: its {symbol}^{degree} terms nearly cancel")
    return degree, rates[degree]


def _atom_growth(atom: Atom, symbol: Symbol) -> tuple[int, Fraction]:
    """Return the growth of an atom as ``_growth`` does, but degree 0 for a bounded atom."""
    if isinstance(atom, Symbol):
        return (1, Fraction(1)) if atom == symbol else (0, Fraction(1))
    if symbol not in atom.symbols or not isinstance(atom, Div | Choice):
        return 0, Fraction(1)
    # the options that ``_resolve_at_infinity`` leaves differ by a bounded amount, so any of them has the growth
    degree, rate = _growth(atom.args[0], symbol)
    if isinstance(atom, Div):
        rate /= atom.k
    return (degree, rate) if rate else (0, Fraction(1))


def _resolve_at_infinity(dim: TDim, symbol: Symbol) -> TDim:
    """Resolve every choice and comparison whose result is fixed for large values of symbol."""

    def grows(diff: TDim) -> Fraction:
        return _growth(diff, symbol)[1]

    def image(atom: Atom) -> TDim:
        if isinstance(atom, Symbol) or symbol not in atom.symbols:
            return TDim((((atom,), 1),), 0, dim.scope)
        args = tuple(_resolve_at_infinity(arg, symbol) for arg in atom.args)
        match atom:
            case Ge() | Eq():
                rate = grows(args[0])
                return TDim.of(int(isinstance(atom, Ge) and rate > 0)) if rate else rebuild(atom, args)
            case Min():
                return rebuild(atom, tuple(a for a in args if not any(grows(a - b) > 0 for b in args)))
            case Max():
                return rebuild(atom, tuple(a for a in args if not any(grows(a - b) < 0 for b in args)))
            case Broadcast():
                return _broadcast_at_infinity(atom, args, symbol)
            case _:
                return rebuild(atom, args)

    return dim if symbol not in dim.symbols else replace_atoms(dim, image)


def _broadcast_at_infinity(atom: Broadcast, args: tuple[TDim, ...], symbol: Symbol) -> TDim:
    growing = [arg for arg in args if _growth(arg, symbol)[1]]
    if any(_growth(arg - growing[0], symbol)[1] for arg in growing):
        raise DimError(f"{atom.text} has no slope in {symbol}: its sizes grow apart")
    return growing[0] if growing else rebuild(atom, args)
