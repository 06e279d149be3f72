"""Dims that never decrease as a symbol increases."""

from __future__ import annotations

from collections.abc import Iterator

from pulse.dim.atoms import Div, Max, Min
from pulse.dim.canonical import rebuild, replace_atoms
from pulse.dim.scope import SymbolScope
from pulse.dim.tdim import Atom, Symbol, TDim


def never_falls(dim: TDim, symbol: Symbol) -> bool:
    """Return whether dim, a function of symbol alone, is proved not to decrease as the symbol increases from 0."""
    return _all_terms_grow(dim, symbol) or _is_proved(dim, symbol) or _is_function_of_choice(dim, symbol)


def _all_terms_grow(dim: TDim, symbol: Symbol) -> bool:
    return all(
        coefficient > 0 and len(monomial) == 1 and _atom_never_falls(monomial[0], symbol)
        for monomial, coefficient in dim.terms
    )


def _atom_never_falls(atom: Atom, symbol: Symbol) -> bool:
    return isinstance(atom, Symbol) or (
        isinstance(atom, Div | Min | Max) and all(never_falls(arg, symbol) for arg in atom.args)
    )


def _is_proved(dim: TDim, symbol: Symbol) -> bool:
    scope = SymbolScope()
    scope.assume("n >= 0")
    now, later = (dim.subs({symbol: scope.symbol("n") + larger}) for larger in (0, 1))
    return later.prove_ge(now).yes


def _is_function_of_choice(dim: TDim, symbol: Symbol) -> bool:
    """Return whether dim, a function of one min or max, grows with it, as that grows with the symbol."""
    scope = SymbolScope()
    x, n = scope.symbol("x"), scope.symbol("n")
    of_x = dim.subs({symbol: x})
    for choice in _choices(of_x):
        outer = _replace_atom(of_x, choice, n + choice.eval({x: 0}))
        if x not in outer.symbols and _atom_never_falls(choice, x):
            return never_falls(outer, n)
    return False


def _choices(dim: TDim) -> Iterator[Min | Max]:
    """Yield each min and max in a dim, outer ones first."""
    for monomial, _ in dim.terms:
        for atom in monomial:
            if isinstance(atom, Min | Max):
                yield atom
            for arg in atom.args:
                yield from _choices(arg)


def _replace_atom(dim: TDim, replaced: Atom, value: TDim) -> TDim:
    """Return dim with a value in place of an atom."""

    def image(atom: Atom) -> TDim:
        if atom == replaced:
            return value
        args = tuple(_replace_atom(arg, replaced, value) for arg in atom.args)
        return rebuild(atom, args) if args else TDim.of(atom)

    return replace_atoms(dim, image)
