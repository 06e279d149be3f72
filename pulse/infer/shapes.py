"""Relations between whole shapes: one count of entries, and broadcasting."""

from collections.abc import Sequence

from pulse.dim import TDim
from pulse.facts import cancel_sizes, volume
from pulse.graph import OutletId
from pulse.infer.relations import HasRank
from pulse.infer.wire_facts import Axis, WireFacts
from pulse.ops.shape import single_quotient
from pulse.support.record import record


@record
class SameCount:
    """The product of some sizes is the product of others."""

    left: Sequence[Axis]
    right: Sequence[Axis]

    def apply(self, facts: WireFacts) -> None:
        for here, there in ((self.left, self.right), (self.right, self.left)):
            holes = [axis for axis in here if facts.size(axis) is None]
            sizes = [size for axis in here if (size := facts.size(axis)) is not None]
            known_sizes = [size for axis in there if (size := facts.size(axis)) is not None]
            if len(holes) == 1 and len(known_sizes) == len(there):
                remaining_sizes = _divide_sizes(known_sizes, sizes)
                if remaining_sizes is not None:
                    facts.set_size(holes[0], remaining_sizes)


def _divide_sizes(dividends: Sequence[TDim], sizes: Sequence[TDim]) -> TDim | None:
    """Return the product of ``dividends`` over the product of ``sizes``; None if it depends on the length."""
    over, under = cancel_sizes(dividends, sizes)
    part = volume(under)
    return None if part == 0 or 0 in sizes else single_quotient(volume(over), part)


@record
class Broadcasting:
    """``out`` is the broadcast shape of the inputs, which are aligned at their last axes.

    out     the output
    inputs  the inputs
    end     the number of last axes to omit, on every wire
    """

    out: OutletId
    inputs: Sequence[OutletId]
    end: int = 0

    def apply(self, facts: WireFacts) -> None:
        self._ranks(facts)
        rank = facts.rank(self.out)
        ranks = {wire: facts.rank(wire) for wire in self.inputs}
        if rank is None:
            return
        for index in range(-rank, -self.end):
            there = [Axis(wire, index) for wire, axes in ranks.items() if axes is not None and -index <= axes]
            if None in ranks.values():
                self._infer_output_size(facts, Axis(self.out, index), there)
            else:
                self._axis(facts, Axis(self.out, index), there)

    def _ranks(self, facts: WireFacts) -> None:
        ranks = [facts.rank(wire) for wire in self.inputs]
        known_ranks = [rank for rank in ranks if rank is not None]
        out = facts.rank(self.out)
        if len(known_ranks) == len(ranks):
            HasRank([self.out], max(known_ranks)).apply(facts)
        elif out is not None and ranks.count(None) == 1 and all(rank < out for rank in known_ranks):
            HasRank([self.inputs[ranks.index(None)]], out).apply(facts)

    def _infer_output_size(self, facts: WireFacts, out: Axis, inputs: Sequence[Axis]) -> None:
        """Take a size other than 1 as the output's, for inputs of unknown rank."""
        large = [size for axis in inputs if (size := facts.size(axis)) is not None and size != 1]
        for size in large:
            facts.set_size(out, size)

    def _axis(self, facts: WireFacts, out: Axis, inputs: Sequence[Axis]) -> None:
        self._infer_output_size(facts, out, inputs)
        sizes = [facts.size(axis) for axis in inputs]
        if all(size is not None and size == 1 for size in sizes):
            facts.set_size(out, TDim.of(1))
        size = facts.size(out)
        if size is None:
            return
        if size == 1:
            for axis in inputs:
                facts.set_size(axis, size)
        elif sizes.count(None) == 1 and all(other is None or other == 1 for other in sizes):
            facts.set_size(inputs[sizes.index(None)], size)
