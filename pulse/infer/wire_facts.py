"""The facts of the wires around one node, while its relations refine them."""

from collections.abc import Callable, Mapping

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.infer.fact import Dim, InferenceFact, has_gaps, meet
from pulse.support.record import record


@record
class Axis:
    """One axis of a wire; counted from the end if it is negative."""

    wire: OutletId
    axis: int


class WireFacts:
    """The known facts of some wires, and whether they have changed.

    label   the name of a wire, for errors
    """

    def __init__(
        self, facts: Mapping[OutletId, InferenceFact], label: Callable[[OutletId], str] = str
    ) -> None:
        self.facts = dict(facts)
        self.changed = False
        self._label = label

    def fact(self, wire: OutletId) -> InferenceFact:
        """Return the known facts of a wire."""
        return self.facts[wire]

    def rank(self, wire: OutletId) -> int | None:
        """Return the number of axes; None if unknown."""
        return self.facts[wire].rank

    def size(self, axis: Axis) -> Dim:
        """Return the size of an axis, or None if unknown."""
        return self.facts[axis.wire].dim(axis.axis)

    def value(self, wire: OutletId) -> Array | None:
        """Return the value of a wire; None unless all of it is known."""
        value = self.facts[wire].value
        return None if value is None or has_gaps(value) else value

    def refine(self, wire: OutletId, fact: InferenceFact) -> None:
        """Refine the fact of a wire. Raises FactError: it contradicts the known fact."""
        try:
            better = meet(self.facts[wire], fact)
        except FactError as error:
            raise FactError(f"{self._label(wire)}: {error}") from error
        if better is not self.facts[wire]:
            self.facts[wire] = better
            self.changed = True

    def set_size(self, axis: Axis, size: TDim) -> None:
        """Set the size of an axis. Raises FactError: it is negative, differs, or there is no such axis."""
        if size.prove_ge(0).no:
            raise FactError(f"{self._label(axis.wire)}: axis {axis.axis} would have the size {size}")
        index, rank = axis.axis, self.rank(axis.wire)
        if index < 0:
            if rank is None:
                return
            index += rank
            if index < 0:
                raise FactError(f"{self._label(axis.wire)}: {self.fact(axis.wire)} has no axis {axis.axis}")
        self.refine(axis.wire, InferenceFact.prefix(*(None,) * index, size))
