"""Holes: symbols that replace unknown sizes and entries of values while a node is translated."""

from collections.abc import Sequence
from typing import TypeAlias, cast

from pulse.dim import Symbol, SymbolScope, TDim, ge
from pulse.facts import I64, TypedFact
from pulse.graph import OutletId
from pulse.infer.fact import Dim, InferenceFact, has_gaps, make_value
from pulse.infer.wire_facts import Axis

ReplacedSizes: TypeAlias = dict[Symbol, Axis | None]
"""Each hole -> the place of the size that it replaces; None for an entry of a value."""

PREPARED_HOLES = 16
"""This many symbols for unknown sizes are used again by each translation; others are new."""
MAX_LIST_LENGTH = 32
"""Maximum number of integers of a vector that may be a list of dims."""


def prepare_holes(scope: SymbolScope) -> None:
    """Create the holes that most nodes need and assume that they are sizes, once for all nodes."""
    for index in range(PREPARED_HOLES):
        scope.assume(ge(TDim.of(_size_hole(scope, index)), TDim.of(0)))


def _size_hole(scope: SymbolScope, index: int) -> Symbol:
    return scope.symbol(f"?{index}")


class Holes:
    """The holes of one translation."""

    def __init__(self, scope: SymbolScope) -> None:
        self.replaced: ReplacedSizes = {}
        self._scope = scope
        self._sizes = 0

    def fill(self, wire: OutletId, fact: InferenceFact, is_list: bool) -> TypedFact | None:
        """Return a fact with a hole for each unknown size; None if type or rank are unknown.

        is_list  unknown entries of its value become holes as well, if it can be a list of dims
        """
        if fact.dtype is None or fact.rank is None:
            return None
        dims = tuple(
            self._size(Axis(wire, axis)) if dim is None else dim for axis, dim in enumerate(fact.dims)
        )
        value = fact.value
        entries = _entries(fact) if is_list else None
        if entries is not None:
            value = make_value(
                [self._entry() if entry is None else entry for entry in entries], [int(dim) for dim in dims]
            )
        elif value is not None and has_gaps(value):
            value = None
        return TypedFact(fact.dtype, dims, value)

    def _size(self, axis: Axis) -> TDim:
        hole = _size_hole(self._scope, self._sizes)
        if self._sizes >= PREPARED_HOLES:
            self._scope.assume(ge(TDim.of(hole), TDim.of(0)))
        self._sizes += 1
        self.replaced[hole] = axis
        return TDim.of(hole)

    def _entry(self) -> TDim:
        hole = self._scope.symbol(f"?[{len(self.replaced)}]")
        self.replaced[hole] = None
        return TDim.of(hole)


def _entries(fact: InferenceFact) -> Sequence[Dim] | None:
    """Return the entries of a list of dims, some of them unknown."""
    if fact.value is not None:
        return cast("list[Dim]", fact.value.ravel().tolist()) if has_gaps(fact.value) else None
    sizes = [int(dim) for dim in fact.dims if dim is not None and dim.is_const]
    if fact.dtype != I64 or not fact.rank == len(sizes) <= 1 or sum(sizes) > MAX_LIST_LENGTH:
        return None
    return (None,) * (sizes[0] if sizes else 1)
