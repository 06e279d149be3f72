"""TDim: an integer polynomial over atoms, canonical at birth. Symbol: the simplest atom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias, final

from pulse.errors import DimError

if TYPE_CHECKING:
    from pulse.dim.proof import Proof
    from pulse.dim.scope import SymbolScope

# The modules that build and judge dims import this one, so the methods below import them when called.


class Arithmetic:
    """The operators of TDim and Symbol; an operand that is no dim is left to its own type."""

    def _combine(self, other: object, mine: int, theirs: int) -> TDim:
        from pulse.dim.canonical import combine

        right = _coerce(other)
        return NotImplemented if right is None else combine(TDim.of(self), mine, right, theirs)

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
        from pulse.dim.canonical import multiply

        right = _coerce(other)
        return NotImplemented if right is None else multiply(TDim.of(self), right)

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
        """The same with symbols replaced, all at once."""
        from pulse.dim.canonical import substitute

        return substitute(TDim.of(self), {symbol: TDim.of(value) for symbol, value in values.items()})

    def slope(self, symbol: Symbol) -> Fraction:
        """Growth per unit of `symbol` towards +infinity. Raises DimError if not eventually linear."""
        from pulse.dim.slope import slope

        return slope(TDim.of(self), symbol)

    def bounds(self) -> tuple[int | None, int | None]:
        """Proven least and greatest value; None where there is none or none is known."""
        from pulse.dim.proof import bounds

        return bounds(TDim.of(self))

    def prove_ge(self, other: DimLike) -> Proof:
        """`self >= other` for every allowed value of the symbols: yes, no (false for every one), unknown."""
        from pulse.dim.proof import prove

        return prove(TDim.of(self), ">=", TDim.of(other))

    def prove_gt(self, other: DimLike) -> Proof:
        from pulse.dim.proof import prove

        return prove(TDim.of(self), ">", TDim.of(other))

    def prove_le(self, other: DimLike) -> Proof:
        from pulse.dim.proof import prove

        return prove(TDim.of(self), "<=", TDim.of(other))

    def prove_lt(self, other: DimLike) -> Proof:
        from pulse.dim.proof import prove

        return prove(TDim.of(self), "<", TDim.of(other))

    def prove_eq(self, other: DimLike) -> Proof:
        """`self == other` for every allowed value: yes, no (different for every one), unknown."""
        from pulse.dim.proof import prove

        return prove(TDim.of(self), "==", TDim.of(other))

    def __ge__(self, other: DimLike) -> bool:
        return NotImplemented if _coerce(other) is None else bool(self.prove_ge(other))

    def __gt__(self, other: DimLike) -> bool:
        return NotImplemented if _coerce(other) is None else bool(self.prove_gt(other))

    def __le__(self, other: DimLike) -> bool:
        return NotImplemented if _coerce(other) is None else bool(self.prove_le(other))

    def __lt__(self, other: DimLike) -> bool:
        return NotImplemented if _coerce(other) is None else bool(self.prove_lt(other))

    def __bool__(self) -> bool:
        """Whether the value differs from 0. Raises DimError where that is not decided."""
        return not self.prove_eq(0)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


class Atom:
    """A term that no ring operation takes apart: a symbol, a quotient, a minimum, a comparison …"""

    rank = 1

    @property
    def args(self) -> tuple[TDim, ...]:
        """The dims that the atom is made of."""
        raise NotImplementedError

    @cached_property
    def text(self) -> str:
        raise NotImplementedError

    @cached_property
    def key(self) -> tuple[int, str]:
        """The place among other atoms of one scope."""
        return self.rank, self.text

    @cached_property
    def symbols(self) -> frozenset[Symbol]:
        return frozenset[Symbol]().union(*(arg.symbols for arg in self.args))

    def eval(self, values: Mapping[Symbol, int]) -> int:
        raise NotImplementedError


@final
@dataclass(frozen=True, repr=False)
class Symbol(Arithmetic, Atom):
    """A named integer of one scope, made by `SymbolScope.symbol`."""

    name: str
    scope: SymbolScope
    rank = 0

    @property
    def args(self) -> tuple[TDim, ...]:
        return ()

    @cached_property
    def text(self) -> str:
        from pulse.dim.parse import quote

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
            given = ", ".join(sorted(symbol.name for symbol in values)) or "none"
            raise DimError(f"symbol {self} has no value; given: {given}")
        return int(values[self])


Monomial: TypeAlias = tuple[Atom, ...]


@final
@dataclass(frozen=True, eq=False, repr=False)
class TDim(Arithmetic):
    """sum(coefficient * product of atoms) + const, terms sorted; made by operators, `of` and `parse`."""

    terms: tuple[tuple[Monomial, int], ...]
    const: int
    scope: SymbolScope | None

    @staticmethod
    def of(value: object) -> TDim:
        """The dim of an int, a symbol or a dim. Raises DimError for anything else."""
        dim = _coerce(value)
        if dim is None:
            raise DimError(f"{value!r} is no dimension; give an int, Symbol or TDim")
        return dim

    @property
    def is_const(self) -> bool:
        return not self.terms

    @cached_property
    def symbols(self) -> frozenset[Symbol]:
        return frozenset[Symbol]().union(*(atom.symbols for monomial, _ in self.terms for atom in monomial))

    def eval(self, values: Mapping[Symbol, int]) -> int:
        """The value at a point. Raises DimError for a symbol without value or a broadcast that clashes."""
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
        symbol = _plain_symbol(self)
        return hash((self.terms, self.const)) if symbol is None else hash(symbol)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TDim):
            right = _coerce(other)
            if right is None:
                return NotImplemented
            other = right
        return self.const == other.const and self.terms == other.terms

    @cached_property
    def _text(self) -> str:
        from pulse.dim.parse import render

        return render(self)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return TDim, (self.terms, self.const, self.scope)


DimLike: TypeAlias = TDim | Symbol | int


def _coerce(value: object) -> TDim | None:
    if isinstance(value, TDim):
        return value
    if isinstance(value, Symbol):
        return TDim((((value,), 1),), 0, value.scope)
    if isinstance(value, int | Integral):
        return TDim((), int(value), None)
    return None


def _divide(numerator: object, divisor: object) -> TDim:
    from pulse.dim.canonical import floor_div

    top, bottom = _coerce(numerator), _coerce(divisor)
    if top is None or bottom is None:
        return NotImplemented
    if bottom.terms or bottom.const <= 0:
        raise DimError(f"cannot divide {top} by {bottom}; the divisor must be a positive integer")
    return floor_div(top, bottom.const)


def _plain_symbol(dim: TDim) -> Symbol | None:
    if dim.const or len(dim.terms) != 1 or dim.terms[0][1] != 1 or len(dim.terms[0][0]) != 1:
        return None
    atom = dim.terms[0][0][0]
    return atom if isinstance(atom, Symbol) else None


def _names(dim: TDim) -> str:
    return ", ".join(sorted(str(symbol) for symbol in dim.symbols))
