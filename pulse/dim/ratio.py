"""Quotients of dims: sizes that a file computes in floats, as long as floats are exact."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import gcd

from pulse.dim.canonical import ceil_div, dim_max, dim_min
from pulse.dim.tdim import DimLike, TDim
from pulse.errors import DimError
from pulse.support.record import record

MAX_TERM = 1 << 12
"""A constant with a larger numerator or denominator counts as rounded, such as 0.1, not as an exact fraction."""


@record
class Ratio:
    """num / den, den >= 1.

    Floats round a quotient whose denominator is not a power of two, unless its exact value is an integer or half of
    one. So its floor, ceiling and nearest integer are exact, as long as no operation turns a rounded value back into a
    whole number. Operators raise DimError if that may happen, as in T / 3 * 3.
    """

    num: TDim
    den: int

    @staticmethod
    def of(value: DimLike | float | Ratio) -> Ratio:
        """Return the ratio that equals a number. Raises DimError: a float is not a simple fraction."""
        if isinstance(value, Ratio):
            return value
        if not isinstance(value, float):
            return Ratio(TDim.of(value), 1)
        try:
            fraction = Fraction(value)
        except (ValueError, OverflowError) as error:
            raise DimError(f"{value} is not a size") from error
        if fraction.denominator != 1 and max(abs(fraction.numerator), fraction.denominator) > MAX_TERM:
            raise DimError(
                f"{value} is not a simple fraction, so sizes that are computed with it are rounded"
            )
        return Ratio(TDim.of(fraction.numerator), fraction.denominator)

    @property
    def is_exact(self) -> bool:
        """Whether floats represent it exactly for all sizes."""
        return _is_power_of_two(self.den)

    def __add__(self, other: Ratio) -> Ratio:
        self._require(self.is_exact or other.is_exact)
        return _reduce(self.num * other.den + other.num * self.den, self.den * other.den)

    def __sub__(self, other: Ratio) -> Ratio:
        return self + -other

    def __neg__(self) -> Ratio:
        return Ratio(-self.num, self.den)

    def __mul__(self, other: Ratio) -> Ratio:
        self._require(
            (self.is_exact or other._scales_exactly()) and (other.is_exact or self._scales_exactly())
        )
        return _reduce(self.num * other.num, self.den * other.den)

    def __truediv__(self, other: Ratio) -> Ratio:
        if not other.num.is_const or other.num == 0:
            raise DimError(f"a size is divided by {other}; divide by a constant other than 0")
        divisor = int(other.num)
        return _reduce(self.num * (other.den if divisor > 0 else -other.den), self.den * abs(divisor))

    def minimum(self, other: Ratio) -> Ratio:
        return self._select(dim_min, other)

    def maximum(self, other: Ratio) -> Ratio:
        return self._select(dim_max, other)

    def floor(self) -> Ratio:
        return Ratio(self.num // self.den, 1)

    def ceil(self) -> Ratio:
        return Ratio(ceil_div(self.num, self.den), 1)

    def round(self) -> Ratio:
        """Round to the nearest integer; halves to even."""
        nearest = (2 * self.num + self.den) // (2 * self.den)
        if self.den % 2:
            return Ratio(nearest, 1)
        # halves below an odd integer: num = den / 2 modulo 2 * den
        beyond = self.num - self.den // 2
        odd = beyond // (2 * self.den) - (beyond - 1) // (2 * self.den)
        return Ratio(nearest - odd, 1)

    def truncate(self) -> TDim:
        """Round towards 0. Raises DimError: the sign is unknown."""
        if self.den == 1:
            return self.num
        if not self.num.prove_ge(0).yes:
            raise DimError(f"{self} may be negative, so its rounding towards 0 is unknown")
        return self.num // self.den

    def _scales_exactly(self) -> bool:
        """Return whether products with it are exact in floats: whether it is a power of two."""
        return self.is_exact and self.num.is_const and _is_power_of_two(abs(int(self.num)))

    def _require(self, exact: bool) -> None:
        if not exact:
            raise DimError(f"{self} is rounded in floats, so results computed from it may not be exact")

    def _select(self, choose: Callable[[TDim, TDim], TDim], other: Ratio) -> Ratio:
        return _reduce(choose(self.num * other.den, other.num * self.den), self.den * other.den)

    def __str__(self) -> str:
        return str(self.num) if self.den == 1 else f"({self.num})/{self.den}"


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _reduce(num: TDim, den: int) -> Ratio:
    common = gcd(den, num.const, *(coefficient for _, coefficient in num.terms))
    if common == 1:
        return Ratio(num, den)
    terms = tuple((monomial, coefficient // common) for monomial, coefficient in num.terms)
    return Ratio(TDim(terms, num.const // common, num.scope), den // common)
