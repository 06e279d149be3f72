"""Dims that never decrease as a symbol increases."""

from __future__ import annotations

from pulse.dim.atoms import Div, Max, Min
from pulse.dim.scope import SymbolScope
from pulse.dim.tdim import Atom, Symbol, TDim


def never_falls(dim: TDim, symbol: Symbol) -> bool:
    """Return whether dim, a function of symbol alone, is proved not to decrease as the symbol increases from 0."""
    return _all_terms_grow(dim, symbol) or _is_proved(dim, symbol)


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
