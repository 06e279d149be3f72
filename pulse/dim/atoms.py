"""The compound atoms. Only ``canonical`` makes them; their arguments are already in canonical form."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TypeAlias, final

from pulse.dim.tdim import Atom, Symbol, TDim
from pulse.errors import DimError
from pulse.support.record import record


@final
@record
class Div(Atom):
    """floor(num / k), k >= 2, the coefficients of num in [0, k)."""

    num: TDim
    k: int
    rank = 2
    bracketed = True

    @property
    def args(self) -> tuple[TDim, ...]:
        return (self.num,)

    @cached_property
    def text(self) -> str:
        return f"({self.num})/{self.k}" if self.num.bare_atom is None else f"{self.num}/{self.k}"

    def eval(self, values: Mapping[Symbol, int]) -> int:
        return self.num.eval(values) // self.k


@record
class Choice(Atom):
    """An atom that always equals one of its options."""

    options: tuple[TDim, ...]
    rank = 3
    name = ""

    @property
    def args(self) -> tuple[TDim, ...]:
        return self.options

    @cached_property
    def text(self) -> str:
        return f"{self.name}({','.join(map(str, self.options))})"


@final
class Min(Choice):
    name = "min"

    def eval(self, values: Mapping[Symbol, int]) -> int:
        return min(option.eval(values) for option in self.options)


@final
class Max(Choice):
    name = "max"

    def eval(self, values: Mapping[Symbol, int]) -> int:
        return max(option.eval(values) for option in self.options)


@final
class Broadcast(Choice):
    """The common size of options that are 1 or equal."""

    name = "broadcast"

    def eval(self, values: Mapping[Symbol, int]) -> int:
        sizes = {option.eval(values) for option in self.options} - {1}
        if len(sizes) > 1:
            raise DimError(f"{self.text}: sizes {sorted(sizes)} differ and none is 1; make them equal")
        return sizes.pop() if sizes else 1


@record
class Indicator(Atom):
    """1 if a relation of ``diff`` to 0 holds, else 0."""

    diff: TDim
    rank = 4
    sign = ""

    @property
    def args(self) -> tuple[TDim, ...]:
        return (self.diff,)

    @cached_property
    def text(self) -> str:
        left = TDim(self.diff.terms, 0, self.diff.scope)
        return f"({left}{self.sign}{-self.diff.const})"


@final
class Ge(Indicator):
    sign = ">="

    def eval(self, values: Mapping[Symbol, int]) -> int:
        return int(self.diff.eval(values) >= 0)


@final
class Eq(Indicator):
    sign = "=="

    def eval(self, values: Mapping[Symbol, int]) -> int:
        return int(self.diff.eval(values) == 0)


Piecewise: TypeAlias = Min | Max | Broadcast | Ge | Eq
