"""Relations between the wires of one node, as rules state them. Each refines every wire that it determines."""

from collections.abc import Sequence
from typing import Protocol

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import MAX_AXES, DType
from pulse.graph import OutletId
from pulse.infer.equation import quotient
from pulse.infer.fact import Dims, InferenceFact
from pulse.infer.wire_facts import Axis, WireFacts
from pulse.support.record import record
from pulse.support.wording import count_of


class FactRelation(Protocol):
    """A condition on wires."""

    def apply(self, facts: WireFacts) -> None:
        """Refine the facts of the wires by each other. Raises FactError: they contradict it."""
        ...


@record
class SameType:
    """The wires have one type."""

    wires: Sequence[OutletId]

    def apply(self, facts: WireFacts) -> None:
        for dtype in [facts.fact(wire).dtype for wire in self.wires]:
            if dtype is not None:
                HasType(self.wires, dtype).apply(facts)


@record
class HasType:
    """The wires have this type."""

    wires: Sequence[OutletId]
    dtype: DType

    def apply(self, facts: WireFacts) -> None:
        for wire in self.wires:
            facts.refine(wire, InferenceFact(self.dtype))


@record
class SameShape:
    """The wires have one shape."""

    wires: Sequence[OutletId]

    def apply(self, facts: WireFacts) -> None:
        for fact in [facts.fact(wire) for wire in self.wires]:
            for wire in self.wires:
                facts.refine(wire, InferenceFact(shape=fact.shape, open=fact.open))


@record
class HasRank:
    """The wires have this many axes."""

    wires: Sequence[OutletId]
    rank: int

    def apply(self, facts: WireFacts) -> None:
        if not 0 <= self.rank <= MAX_AXES:
            raise FactError(
                f"a wire would have {count_of(self.rank, 'axis', 'axes')}; 0 to {MAX_AXES} are supported"
            )
        for wire in self.wires:
            facts.refine(wire, InferenceFact(shape=(None,) * self.rank))


@record
class SameRank:
    """The wires have equal ranks."""

    wires: Sequence[OutletId]

    def apply(self, facts: WireFacts) -> None:
        for rank in [facts.rank(wire) for wire in self.wires]:
            if rank is not None:
                HasRank(self.wires, rank).apply(facts)


@record
class RankSum:
    """``total`` has as many axes as the parts together, and ``extra`` more."""

    total: OutletId
    parts: Sequence[OutletId]
    extra: int = 0

    def apply(self, facts: WireFacts) -> None:
        total, ranks = facts.rank(self.total), [facts.rank(part) for part in self.parts]
        partial = sum(rank for rank in ranks if rank is not None) + self.extra
        if None not in ranks:
            HasRank([self.total], partial).apply(facts)
        elif ranks.count(None) == 1 and total is not None:
            HasRank([self.parts[ranks.index(None)]], total - partial).apply(facts)


@record
class SameSize:
    """The axes have one size."""

    axes: Sequence[Axis]

    def apply(self, facts: WireFacts) -> None:
        for size in [facts.size(axis) for axis in self.axes]:
            if size is not None:
                for axis in self.axes:
                    facts.set_size(axis, size)


@record
class HasSize:
    """The axes have this size."""

    axes: Sequence[Axis]
    size: TDim

    def apply(self, facts: WireFacts) -> None:
        for axis in self.axes:
            facts.set_size(axis, self.size)


@record
class HasSizes:
    """The shape of a wire; unknown sizes are None."""

    wire: OutletId
    sizes: Dims

    def apply(self, facts: WireFacts) -> None:
        facts.refine(self.wire, InferenceFact(shape=self.sizes))


@record
class SizeMultiple:
    """``total`` is ``factor`` times ``part``."""

    total: Axis
    part: Axis
    factor: int

    def apply(self, facts: WireFacts) -> None:
        total, part = facts.size(self.total), facts.size(self.part)
        if part is not None:
            facts.set_size(self.total, part * self.factor)
        elif total is not None:
            size = quotient(total, self.factor)
            if size is not None:
                facts.set_size(self.part, size)


@record
class SizeSum:
    """The size of ``total`` is the sum of the sizes of the parts."""

    total: Axis
    parts: Sequence[Axis]

    def apply(self, facts: WireFacts) -> None:
        total = facts.size(self.total)
        holes = [part for part in self.parts if facts.size(part) is None]
        partial = sum((size for part in self.parts if (size := facts.size(part)) is not None), TDim.of(0))
        if not holes:
            facts.set_size(self.total, partial)
        elif total is not None and len(set(holes)) == 1:
            share = quotient(total - partial, len(holes))
            if share is not None:
                facts.set_size(holes[0], share)


@record
class AxisMapping:
    """Axis ``target_axes[i]`` of ``target`` is axis i of ``source``."""

    source: OutletId
    target: OutletId
    target_axes: Sequence[int]

    def apply(self, facts: WireFacts) -> None:
        for axis, target_axis in enumerate(self.target_axes):
            SameSize([Axis(self.source, axis), Axis(self.target, target_axis)]).apply(facts)
