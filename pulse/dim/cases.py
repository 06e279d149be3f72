"""The extent of a dim under premises: split into cases in which everything is linear, and bound each.

1. min, max, broadcast and comparisons are split into their branches, each with its condition as a premise.
2. Every symbol in a quotient becomes S = L*q + r, where L is the modulus that its quotients depend on; for each r
all quotients are exact polynomials in q.
3. Elimination of the q yields the range of the dim in each case.
Past the case limit quotients stay variables with k*d <= N <= k*d + k-1, which is sound but weaker.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil, gcd, lcm, prod
from typing import TypeAlias

from pulse.dim.atoms import Broadcast, Div, Eq, Ge, Max, Min, Piecewise
from pulse.dim.canonical import rebuild, replace_atoms
from pulse.dim.interval import interval
from pulse.dim.linear import LinearSum, value_range
from pulse.dim.tdim import Atom, Symbol, TDim
from pulse.errors import DimError
from pulse.support.record import record

MAX_BRANCHES = 64
"""Maximum number of branches of a dim; with more, it counts as unbounded."""
MAX_CASES = 2048
"""Maximum number of cases by residues in all branches; if they do not suffice, bounds are those without residues."""
FEW_CASES = 32
"""Up to this many cases are examined at once; for more, bounds without residues are tried first."""
MAX_TRIED_VALUE = 1 << 14
"""The largest value of a symbol at which a premise is tried."""


@record
class Extent:
    """Bounds of a dim, and whether it may be 0."""

    low: int | None
    high: int | None
    may_be_zero: bool


_ANYTHING = Extent(None, None, True)


Answers: TypeAlias = Callable[[Extent], bool]


def extent_under(dim: TDim, premises: tuple[TDim, ...], answers: Answers | None = None) -> Extent | None:
    """Return bounds of dim where all premises are >= 0; None if they never are.

    With ``answers``, which says whether an extent answers the question, cases are examined no further than needed. If
    an extent answers it, so must every narrower one.
    """
    union: Extent | None = None
    for extent in _extents(dim, _relevant_premises(dim, premises), answers):
        union = extent if union is None else _union(union, extent)
        if union == _ANYTHING if answers is None else not answers(union):
            break
    return union


def _union(left: Extent, right: Extent) -> Extent:
    low = None if left.low is None or right.low is None else min(left.low, right.low)
    high = None if left.high is None or right.high is None else max(left.high, right.high)
    return Extent(low, high, left.may_be_zero or right.may_be_zero)


def _relevant_premises(dim: TDim, premises: tuple[TDim, ...]) -> tuple[TDim, ...]:
    """Return the premises tied to dim by shared symbols, directly or not, and the ranges of all their symbols."""
    symbols, relevant = set(dim.symbols), list[TDim]()
    while fresh := [p for p in premises if p not in relevant and p.symbols & symbols]:
        relevant += fresh
        symbols = symbols.union(*(p.symbols for p in fresh))
    conditions = [_as_lower_bound(premise) for premise in relevant]
    for symbol in sorted(symbols, key=str):
        low, high = interval(TDim.of(symbol))
        conditions += [] if low is None else [symbol - low]
        conditions += [] if high is None else [high - symbol]
    return tuple(dict.fromkeys(conditions))


def _as_lower_bound(premise: TDim) -> TDim:
    """Return a premise with quotients of one symbol as the equivalent ``symbol - bound``; others as they are."""
    if len(premise.symbols) != 1 or all(isinstance(atom, Symbol) for m, _ in premise.terms for atom in m):
        return premise
    (symbol,) = premise.symbols
    low, _ = interval(TDim.of(symbol))
    bound = None if low is None else _lower_bound(premise, symbol, low)
    return premise if bound is None else symbol - bound


@lru_cache
def _lower_bound(dim: TDim, symbol: Symbol, low: int) -> int | None:
    """Return the value from which on, and only from which on, the dim is >= 0; None if it is not found."""
    line = _line_below(dim)
    if line is None or line[0] <= 0:
        return None
    sure = max(low, ceil(-line[1] / line[0]))
    if sure - low > MAX_TRIED_VALUE:
        return None
    satisfied = [dim.eval({symbol: value}) >= 0 for value in range(low, sure)]
    first = satisfied.index(True) if True in satisfied else len(satisfied)
    return low + first if all(satisfied[first:]) else None


def _line_below(dim: TDim, sign: int = 1) -> tuple[Fraction, Fraction] | None:
    """Return slope and constant of a line that ``sign * dim``, a function of one symbol, is never below."""
    slope, const = Fraction(0), Fraction(sign * dim.const)
    for monomial, coefficient in dim.terms:
        if len(monomial) != 1:
            return None
        (atom,), scale = monomial, abs(coefficient)
        side = sign if coefficient > 0 else -sign
        if isinstance(atom, Symbol):
            slope += side * scale
        elif isinstance(atom, Div):
            inner = _line_below(atom.num, side)
            if inner is None:
                return None
            rounding = atom.k - 1 if side > 0 else 0
            slope, const = slope + scale * inner[0] / atom.k, const + scale * (inner[1] - rounding) / atom.k
        else:
            return None
    return slope, const


def _extents(dim: TDim, premises: tuple[TDim, ...], answers: Answers | None) -> Iterator[Extent]:
    branches = _branches(dim, premises)
    if branches is None:
        coarse = _coarse_extent(dim, premises)
        yield from () if coarse is None else (coarse,)
        return
    cases_left = MAX_CASES
    for branch, conditions in branches:
        moduli = _moduli((branch, *conditions))
        cases = prod(moduli.values())
        if cases > FEW_CASES:
            coarse = _coarse_extent(branch, conditions)
            if coarse is None:
                continue
            if cases > cases_left or (answers is not None and answers(coarse)):
                yield coarse
                continue
        cases_left -= cases
        yield from _residue_extents(branch, conditions, moduli)


def _branches(dim: TDim, premises: tuple[TDim, ...]) -> list[tuple[TDim, tuple[TDim, ...]]] | None:
    """Return all combinations of branches of the piecewise atoms; None past the limit."""
    branches: list[tuple[TDim, tuple[TDim, ...]]] = []
    todo = [(dim, premises)]
    while todo:
        here, conditions = todo.pop()
        atom = next((atom_here for d in (here, *conditions) for atom_here in _innermost_piecewise(d)), None)
        if atom is None:
            branches.append((here, conditions))
        else:
            for value, extra in _atom_branches(atom):
                try:
                    new_conditions = tuple(_replace(condition, atom, value) for condition in conditions)
                    todo.append((_replace(here, atom, value), new_conditions + extra))
                except DimError:
                    continue  # two sizes of a broadcast clash: the branch has no values
        if len(branches) + len(todo) > MAX_BRANCHES:
            return None
    return branches


def _innermost_piecewise(dim: TDim) -> Iterator[Piecewise]:
    for monomial, _ in dim.terms:
        for atom in monomial:
            for arg in atom.args:
                yield from _innermost_piecewise(arg)
            if isinstance(atom, Piecewise):
                yield atom


def _replace(dim: TDim, old: Atom, new: TDim) -> TDim:
    def image(atom: Atom) -> TDim:
        if atom == old:
            return new
        if isinstance(atom, Symbol):
            return TDim.of(atom)
        return rebuild(atom, tuple(_replace(arg, old, new) for arg in atom.args))

    return replace_atoms(dim, image)


def _atom_branches(atom: Piecewise) -> Iterator[tuple[TDim, tuple[TDim, ...]]]:
    """Yield (value, conditions that must be >= 0) of each branch; together they cover all cases that have a value."""
    match atom:
        case Min():
            for option in atom.options:
                yield option, tuple(other - option for other in atom.options if other != option)
        case Max():
            for option in atom.options:
                yield option, tuple(option - other for other in atom.options if other != option)
        case Broadcast():
            for option in atom.options:
                others = [other for other in atom.options if other != option]
                for sizes in product((TDim.of(1), option), repeat=len(others)):
                    diffs = [other - size for other, size in zip(others, sizes, strict=True)]
                    yield option, tuple(signed for diff in diffs for signed in (diff, -diff))
        case Ge():
            yield TDim.of(1), (atom.diff,)
            yield TDim.of(0), (-1 - atom.diff,)
        case Eq():
            yield TDim.of(1), (atom.diff, -atom.diff)
            yield TDim.of(0), (atom.diff - 1,)
            yield TDim.of(0), (-1 - atom.diff,)


def _moduli(dims: tuple[TDim, ...]) -> dict[Symbol, int]:
    """Return, for each symbol S, the number L such that S mod L decides every remainder in the dims."""
    moduli: dict[Symbol, int] = {}

    def visit(dim: TDim, modulus: int) -> None:
        for monomial, coefficient in dim.terms:
            multiple = modulus // gcd(modulus, coefficient)
            for atom in monomial:
                if isinstance(atom, Symbol):
                    moduli[atom] = lcm(moduli.get(atom, 1), multiple)
                elif isinstance(atom, Div):
                    visit(atom.num, multiple * atom.k)
                else:
                    for arg in atom.args:
                        visit(arg, multiple)

    for dim in dims:
        visit(dim, 1)
    return moduli


def period(dim: TDim, symbol: Symbol) -> int:
    """Return the number L such that symbol mod L decides every remainder in dim."""
    return _moduli((dim,)).get(symbol, 1)


def choices(dim: TDim) -> Iterator[tuple[TDim, ...]]:
    """Yield the alternatives of each minimum, maximum, broadcast and comparison in dim, innermost first."""
    for atom in _innermost_piecewise(dim):
        yield (atom.diff, TDim.of(0)) if isinstance(atom, Ge | Eq) else atom.options


_Polynomial: TypeAlias = dict[tuple[Symbol, ...], int]


def _residue_extents(dim: TDim, premises: tuple[TDim, ...], moduli: dict[Symbol, int]) -> Iterator[Extent]:
    for residues in product(*map(range, moduli.values())):
        residue_of = {
            symbol: (modulus, r) for (symbol, modulus), r in zip(moduli.items(), residues, strict=True)
        }
        extent = _row_extent(_row(dim, residue_of), [_row(premise, residue_of) for premise in premises])
        if extent is not None:
            yield extent


def _row_extent(goal: LinearSum, premises: list[LinearSum]) -> Extent | None:
    extent = value_range(goal, premises)
    if extent is None:
        return None
    low, high = extent
    step = gcd(*goal[0].values())
    if step > 1:
        low = None if low is None else low + (goal[1] - low) % step
        high = None if high is None else high - (high - goal[1]) % step
        if low is not None and high is not None and low > high:
            return None
    inside = (low is None or low <= 0) and (high is None or high >= 0)
    return Extent(low, high, inside and goal[1] % max(step, 1) == 0)


def _row(dim: TDim, residue_of: dict[Symbol, tuple[int, int]]) -> LinearSum:
    polynomial = _expand(dim, residue_of)
    const = polynomial.pop((), 0)
    terms: dict[Hashable, int] = {m: c for m, c in polynomial.items() if c}
    return terms, const


def _expand(dim: TDim, residue_of: dict[Symbol, tuple[int, int]]) -> _Polynomial:
    """Return the dim as a polynomial in q, with each symbol replaced by modulus*q + residue."""
    total: _Polynomial = {(): dim.const}
    for monomial, coefficient in dim.terms:
        term: _Polynomial = {(): coefficient}
        for atom in monomial:
            term = _multiply(term, _expand_atom(atom, residue_of))
        for m, c in term.items():
            total[m] = total.get(m, 0) + c
    return total


def _expand_atom(atom: Atom, residue_of: dict[Symbol, tuple[int, int]]) -> _Polynomial:
    if isinstance(atom, Symbol):
        modulus, residue = residue_of[atom]
        return {(atom,): modulus, (): residue}
    assert isinstance(atom, Div)
    # exact: ``_moduli`` made every coefficient of q a multiple of k
    return {m: c // atom.k for m, c in _expand(atom.num, residue_of).items()}


def _multiply(left: _Polynomial, right: _Polynomial) -> _Polynomial:
    result: _Polynomial = {}
    for m, a in left.items():
        for n, b in right.items():
            key = tuple(sorted(m + n, key=lambda symbol: symbol.name))
            result[key] = result.get(key, 0) + a * b
    return result


def _coarse_extent(dim: TDim, premises: tuple[TDim, ...]) -> Extent | None:
    """Return bounds with each atom as a variable, tied to its arguments by inequalities."""
    rows: dict[Atom, list[TDim]] = {}
    for d in (dim, *premises):
        _tie_atoms(d, rows)
    ties = [tie for group in rows.values() for tie in group]
    return _row_extent(_opaque_row(dim), [_opaque_row(d) for d in (*premises, *ties)])


def _opaque_row(dim: TDim) -> LinearSum:
    return dict(dim.terms), dim.const


def _tie_atoms(dim: TDim, ties: dict[Atom, list[TDim]]) -> None:
    for monomial, _ in dim.terms:
        for atom in monomial:
            if atom in ties or isinstance(atom, Symbol):
                continue
            atom_dim = TDim((((atom,), 1),), 0, dim.scope)
            low, high = interval(atom_dim)
            ties[atom] = [atom_dim - low] if low is not None else []
            ties[atom] += [high - atom_dim] if high is not None else []
            match atom:
                case Div():
                    ties[atom] += [atom.num - atom.k * atom_dim, atom.k * atom_dim + atom.k - 1 - atom.num]
                case Min():
                    ties[atom] += [option - atom_dim for option in atom.options]
                case Max():
                    ties[atom] += [atom_dim - option for option in atom.options]
                case _:
                    pass
            for arg in atom.args:
                _tie_atoms(arg, ties)
