"""A node for inference rules: its attributes, its wires and their facts."""

from collections.abc import Iterator

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, is_symbolic
from pulse.graph import OutletId
from pulse.infer.fact import Dims, InferenceFact
from pulse.infer.file_node import FileNode
from pulse.infer.relations import FactRelation, SameRank, SameShape, SameType
from pulse.infer.wire_facts import WireFacts
from pulse.support.record import record


@record(eq=False)
class InferenceNode(FileNode):
    """A node for its inference rule; the facts in ``wire_facts`` are refined between calls of the rule."""

    outlets: tuple[OutletId, ...]
    wire_facts: WireFacts

    @property
    def output(self) -> OutletId:
        """The first output."""
        return self.outlets[0]

    def fact(self, wire: OutletId) -> InferenceFact:
        """Return the known facts of a wire."""
        return self.wire_facts.fact(wire)

    def rank(self, wire: OutletId) -> int | None:
        """Return the number of axes of a wire; None if unknown."""
        return self.wire_facts.rank(wire)

    def numbers(self, slot: int) -> Array | None:
        """Return the value of an input, if known and without symbols."""
        value = self.wire_facts.value(self.input(slot))
        return None if value is None or is_symbolic(value) else value

    def integers(self, slot: int) -> list[int] | None:
        """Return the integers of an input, if known and without symbols."""
        value = self.numbers(slot)
        if value is None or not np.issubdtype(value.dtype, np.integer):
            return None
        return [int(number) for number in value.ravel().tolist()]

    def sizes(self, slot: int) -> Dims | None:
        """Return the entries of an input that lists sizes, None for an unknown one; None if it has no value."""
        value = self.fact(self.input(slot)).value
        if value is None or not (is_symbolic(value) or np.issubdtype(value.dtype, np.integer)):
            return None
        return tuple(None if entry is None else TDim.of(entry) for entry in value.ravel().tolist())

    def count(self, slot: int) -> int | None:
        """Return the number of entries of an input with one axis; None if it is unknown."""
        size = self.fact(self.input(slot)).dim(0)
        return int(size) if size is not None and size.is_const else None

    def find_axes(self, since: int) -> list[int] | None:
        """Return the axes, from an attribute before opset ``since``, else from the second input; None if unknown."""
        if self.opset < since:
            return list(self.integer_list("axes", ()))
        return self.integers(1) if self.has(1) else []


def same_type_and_shape(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the first input and the output: they have one type and shape."""
    yield SameType([node.input(0), node.output])
    yield SameShape([node.input(0), node.output])


def same_type_and_rank(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the first input and the output: they have one type and number of axes."""
    yield SameType([node.input(0), node.output])
    yield SameRank([node.input(0), node.output])
