"""TDim: an integer polynomial over atoms, canonical from construction. Symbol: the simplest atom.

This module has the data of dims and their text. Their operators compute with an ``Algebra``, which ``pulse.dim`` sets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction
from functools import cache, cached_property
from numbers import Integral
from typing import Any, ClassVar, Literal, TypeAlias, final

from pulse.dim.names import quote
from pulse.errors import DimError
from pulse.support.record import record

DimInterval: TypeAlias = tuple[int | None, int | None]
Verdict: TypeAlias = Literal["yes", "no", "unknown"]
ComparisonSign: TypeAlias = Literal[">=", ">", "<=", "<", "=="]
CACHED_INT_LIMIT = 4096
"""The dims of numbers with a smaller absolute value are cached."""


@record
class Algebra:
    """The functions of ``canonical``, ``slope`` and ``proof`` that the operators and proofs of dims call.

    combine     the sum m*a + n*b
    multiply    the product a * b
    floor_div   the quotient a // k
    substitute  the dim with others in place of symbols
    slope       the growth for each unit of a symbol
    bounds      the smallest and the largest value
    prove       whether a comparison holds
    """

    combine: Callable[[TDim, int, TDim, int], TDim]
    multiply: Callable[[TDim, TDim], TDim]
    floor_div: Callable[[TDim, int], TDim]
    substitute: Callable[[TDim, dict[Symbol, TDim]], TDim]
    slope: Callable[[TDim, Symbol], Fraction]
    bounds: Callable[[TDim], DimInterval]
    prove: Callable[[TDim, ComparisonSign, TDim], Proof]


class DimOperators:
    """The operators of TDim and Symbol; NotImplemented for operands of other types."""

    algebra: ClassVar[Algebra]

    def _combine(self, other: object, mine: int, theirs: int) -> TDim:
        right = other if type(other) is TDim else _coerce(other)
        return NotImplemented if right is None else self.algebra.combine(TDim.of(self), mine, right, theirs)

    def __add__(self, other: DimLike) -> TDim:
        return self._combine(other, 1, 1)

    def __radd__(self, other: DimLike) -> TDim:
        return self._combine(other, 1, 1)

    def __sub__(self, other: DimLike) -> TDim:
        return self._combine(other, 1, -1)

    def __rsub__(self, other: DimLike) -> TDim:
        return self._combine(other, -1, 1)

    def __neg__(self) -> TDim:
        return self._combine(0, -1, 1)

    def __pos__(self) -> TDim:
        return TDim.of(self)

    def __mul__(self, other: DimLike) -> TDim:
        right = other if type(other) is TDim else _coerce(other)
        return NotImplemented if right is None else self.algebra.multiply(TDim.of(self), right)

    def __rmul__(self, other: DimLike) -> TDim:
        return self * other

    def __floordiv__(self, other: DimLike) -> TDim:
        return _divide(self, other)

    def __rfloordiv__(self, other: DimLike) -> TDim:
        return _divide(other, self)

    def __mod__(self, other: DimLike) -> TDim:
        quotient = _divide(self, other)
        return NotImplemented if quotient is NotImplemented else self - other * quotient

    def __rmod__(self, other: DimLike) -> TDim:
        quotient = _divide(other, self)
        return NotImplemented if quotient is NotImplemented else other - self * quotient

    def subs(self, values: Mapping[Symbol, DimLike]) -> TDim:
        """Replace symbols, all at once."""
        return self.algebra.substitute(
            TDim.of(self), {symbol: TDim.of(value) for symbol, value in values.items()}
        )

    def slope(self, symbol: Symbol) -> Fraction:
        """Return growth per unit of ``symbol`` towards +infinity. Raises DimError: it is not eventually linear."""
        return self.algebra.slope(TDim.of(self), symbol)

    def bounds(self) -> tuple[int | None, int | None]:
        """Return the proven smallest and largest value; None if unbounded or unknown."""
        return self.algebra.bounds(TDim.of(self))

    def prove_ge(self, other: DimLike) -> Proof:
        """Prove ``self >= other`` for every allowed value of the symbols: yes, no (false for every one), unknown."""
        return self.algebra.prove(TDim.of(self), ">=", TDim.of(other))

    def prove_gt(self, other: DimLike) -> Proof:
        return self.algebra.prove(TDim.of(self), ">", TDim.of(other))

    def prove_le(self, other: DimLike) -> Proof:
        return self.algebra.prove(TDim.of(self), "<=", TDim.of(other))

    def prove_lt(self, other: DimLike) -> Proof:
        return self.algebra.prove(TDim.of(self), "<", TDim.of(other))

    def prove_eq(self, other: DimLike) -> Proof:
        """Prove ``self == other`` for every allowed value: yes, no (different for every one), unknown."""
        return self.algebra.prove(TDim.of(self), "==", TDim.of(other))

    def __ge__(self, other: DimLike) -> bool:
        return NotImplemented if _coerce(other) is None else bool(self.prove_ge(other))

    def __gt__(self, other: DimLike) -> bool:
        return NotImplemented if _coerce(other) is None else bool(self.prove_gt(other))

    def __le__(self, other: DimLike) -> bool:
        return NotImplemented if _coerce(other) is None else bool(self.prove_le(other))

    def __lt__(self, other: DimLike) -> bool:
        return NotImplemented if _coerce(other) is None else bool(self.prove_lt(other))

    def __bool__(self) -> bool:
        """Return whether the value differs from 0. Raises DimError: that is undecided."""
        return not self.prove_eq(0)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


class Atom:
    """A term that no ring operation takes apart: a symbol, a quotient, a minimum, a comparison …"""

    rank = 1
    """The position of its kind in the order of atoms."""
    bracketed = False
    """Whether its text needs brackets as a factor of a product."""

    @property
    def args(self) -> tuple[TDim, ...]:
        """The dims that the atom is made of."""
        raise NotImplementedError

    @cached_property
    def text(self) -> str:
        raise NotImplementedError

    @cached_property
    def key(self) -> tuple[int, str]:
        """The sort key among the atoms of one scope."""
        return self.rank, self.text

    @cached_property
    def symbols(self) -> frozenset[Symbol]:
        return frozenset[Symbol]().union(*(arg.symbols for arg in self.args))

    def eval(self, values: Mapping[Symbol, int]) -> int:
        raise NotImplementedError


@final
@record
class Symbol(DimOperators, Atom):
    """A named integer of one scope, made by ``SymbolScope.symbol``."""

    name: str
    scope: DimScope
    rank = 0

    @property
    def args(self) -> tuple[TDim, ...]:
        return ()

    @cached_property
    def text(self) -> str:
        return quote(self.name)

    @cached_property
    def symbols(self) -> frozenset[Symbol]:
        return frozenset((self,))

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return self.scope.symbol, (self.name,)

    def eval(self, values: Mapping[Symbol, int]) -> int:
        if self not in values:
            names = ", ".join(sorted(symbol.name for symbol in values)) or "none"
            raise DimError(f"symbol {self} has no value; given: {names}")
        return int(values[self])


Monomial: TypeAlias = tuple[Atom, ...]


@final
@record(eq=False)
class TDim(DimOperators):
    """sum(coefficient * product of atoms) + const, terms sorted; made by operators, ``of`` and ``parse``."""

    terms: tuple[tuple[Monomial, int], ...]
    const: int
    scope: DimScope | None

    @staticmethod
    def of(value: object) -> TDim:
        """Return the dim of an int, a symbol or a dim. Raises DimError: it is something else."""
        if type(value) is TDim:
            return value
        dim = _coerce(value)
        if dim is None:
            raise DimError(f"{value!r} is not a dimension; give an int, Symbol or TDim")
        return dim

    @property
    def is_const(self) -> bool:
        return not self.terms

    @property
    def only_atom(self) -> Atom | None:
        """The atom, if the dim is one atom, or one plus a number; else None."""
        if len(self.terms) != 1:
            return None
        monomial, coefficient = self.terms[0]
        return monomial[0] if coefficient == 1 and len(monomial) == 1 else None

    @property
    def bare_atom(self) -> Atom | None:
        """The atom, if the dim is one atom without a number; else None."""
        return None if self.const else self.only_atom

    @cached_property
    def symbols(self) -> frozenset[Symbol]:
        return frozenset[Symbol]().union(*(atom.symbols for monomial, _ in self.terms for atom in monomial))

    def eval(self, values: Mapping[Symbol, int]) -> int:
        """Return the value at a point. Raises DimError: a symbol has no value, or broadcast sizes differ."""
        total = self.const
        for monomial, coefficient in self.terms:
            for atom in monomial:
                coefficient *= atom.eval(values)
            total += coefficient
        return total

    def __int__(self) -> int:
        if self.terms:
            raise DimError(f"{self} is not an integer; give {_names(self)} a value with eval or subs")
        return self.const

    __index__ = __int__

    @cached_property
    def _hash(self) -> int:
        if not self.terms:
            return hash(self.const)
        atom = self.bare_atom
        return hash(atom) if isinstance(atom, Symbol) else hash((self.terms, self.const))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is int:
            return not self.terms and self.const == other
        if not isinstance(other, TDim):
            right = _coerce(other)
            if right is None:
                return NotImplemented
            other = right
        return self.const == other.const and self.terms == other.terms

    @cached_property
    def _text(self) -> str:
        parts: list[str] = []
        for monomial, coefficient in self.terms:
            alone = coefficient == 1 and len(monomial) == 1
            factors = [atom.text if alone or not atom.bracketed else f"({atom.text})" for atom in monomial]
            size = [str(abs(coefficient))] if abs(coefficient) != 1 else []
            parts.append(("-" if coefficient < 0 else "+") + "*".join(size + factors))
        if self.const or not parts:
            parts.append(f"{self.const:+d}")
        return "".join(parts).removeprefix("+")

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return TDim, (self.terms, self.const, self.scope)


DimLike: TypeAlias = TDim | Symbol | int


@record
class Proof:
    """The answer to ``left relation right``, for all allowed values of the symbols at once."""

    left: TDim
    relation: ComparisonSign
    right: TDim
    verdict: Verdict

    @property
    def yes(self) -> bool:
        """Whether it is true for every allowed value."""
        return self.verdict == "yes"

    @property
    def no(self) -> bool:
        """Whether it is false for every allowed value."""
        return self.verdict == "no"

    @property
    def unknown(self) -> bool:
        return self.verdict == "unknown"

    def __bool__(self) -> bool:
        if self.unknown:
            raise DimError(
                f"cannot decide {self.left} {self.relation} {self.right} for every allowed value; "
                f"add assumptions to the scope of the symbols, or read .yes or .no"
            )
        return self.yes


@record(eq=False, frozen=False)
class Cache:
    """Results that hold until the next assumption."""

    quotients: dict[tuple[TDim, int], TDim] = field(default_factory=dict[tuple[TDim, int], TDim])
    mirrors: dict[Atom, Any] = field(default_factory=dict[Atom, Any])
    intervals: dict[TDim, DimInterval] = field(default_factory=dict[TDim, DimInterval])
    verdicts: dict[tuple[str, TDim], Verdict] = field(default_factory=dict[tuple[str, TDim], Verdict])
    others: dict[tuple[object, ...], Any] = field(default_factory=dict[tuple[object, ...], Any])


class DimScope(ABC):
    """The part of a scope that dims read; ``SymbolScope`` is the only subclass."""

    def __init__(self) -> None:
        self.premises: tuple[TDim, ...] = ()
        """Dims that are >= 0 by assumption."""
        self.joint: tuple[TDim, ...] = ()
        """The premises that are linear in two or more symbols."""
        self.ranges: dict[Symbol, DimInterval] = {}
        """Symbol -> its smallest and largest value by assumption."""
        self.cache = Cache()

    @abstractmethod
    def symbol(self, name: str) -> Symbol:
        """Return the symbol of that name, always the same. Raises DimError: the name is empty, or has a backquote."""

    @abstractmethod
    def assume(self, condition: str | TDim) -> None:
        """Assume a comparison (>=, >, <=, <, ==) from now on.

        Raises DimError: it is not a comparison or contradicts an earlier assumption.
        """


@cache
def _small_constant(value: int) -> TDim:
    return TDim((), value, None)


def constant(value: int) -> TDim:
    """Return the dim of a number; small ones are cached."""
    return _small_constant(value) if -CACHED_INT_LIMIT < value < CACHED_INT_LIMIT else TDim((), value, None)


def _coerce(value: object) -> TDim | None:
    if type(value) is int:
        return constant(value)
    if isinstance(value, TDim):
        return value
    if isinstance(value, int):
        return constant(int(value))
    if isinstance(value, Symbol):
        return TDim((((value,), 1),), 0, value.scope)
    if isinstance(value, Integral):
        return constant(int(value))
    return None


def _divide(numerator: object, divisor: object) -> TDim:
    top, bottom = _coerce(numerator), _coerce(divisor)
    if top is None or bottom is None:
        return NotImplemented
    if bottom.terms or bottom.const <= 0:
        raise DimError(f"cannot divide {top} by {bottom}; the divisor must be a positive integer")
    return DimOperators.algebra.floor_div(top, bottom.const)


def _names(dim: TDim) -> str:
    return ", ".join(sorted(str(symbol) for symbol in dim.symbols))
