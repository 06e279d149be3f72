"""Receptive fields: the frames of the source on which each output frame depends."""

import math
from fractions import Fraction

from pulse.graph import OutletId
from pulse.ops.op import Banded, Cumulative, Ends, Relation, Window
from pulse.pulsify.stream_relations import StreamRelations
from pulse.support.record import record
from pulse.typed import TypedNetwork


@record
class ReceptiveField:
    """Output frame j sees the frames ``j/rate + first … j/rate + last`` of the symbol.

    ``first`` is None if it sees all earlier frames.
    """

    first: Fraction | None
    last: Fraction

    @property
    def frames(self) -> int | None:
        """How many frames of the symbol it spans; None if it sees all earlier frames."""
        return None if self.first is None else math.floor(self.last - self.first) + 1

    @property
    def ahead(self) -> int:
        """How many frames of the symbol it looks ahead."""
        return max(0, math.ceil(self.last))

    def union(self, other: "ReceptiveField") -> "ReceptiveField":
        """Return the smallest field that contains both."""
        everything = self.first is None or other.first is None
        first = None if everything else min(self.first or Fraction(0), other.first or Fraction(0))
        return ReceptiveField(first, max(self.last, other.last))


def receptive_fields(model: TypedNetwork, related: StreamRelations) -> dict[OutletId, ReceptiveField]:
    """Return the receptive field of every wire that depends on a streaming input; padding does not count."""
    graph = model.graph
    fields = {
        outlet: ReceptiveField(Fraction(0), Fraction(0)) for outlet in graph.inputs if outlet in related.flows
    }
    for node_id in related.order:
        relation = related.relations.get(node_id)
        node = graph.nodes[node_id]
        inputs = [(outlet, fields[outlet]) for outlet in node.inputs if outlet in fields]
        if relation is None or not inputs:
            continue
        field = inputs[0][1]
        for _, other in inputs[1:]:
            field = field.union(other)
        rate_in, rate_out = related.flows[inputs[0][0]].rate, related.flows[OutletId(node_id)].rate
        field = _extend_field(relation, field, rate_in, rate_out)
        fields |= dict.fromkeys(node.wires, field)
    return fields


def _extend_field(
    relation: Relation, field: ReceptiveField, rate_in: Fraction, rate_out: Fraction
) -> ReceptiveField:
    if isinstance(relation, Ends):
        return _move(field, -int(relation.before) / rate_in, -int(relation.before) / rate_in)
    if isinstance(relation, Cumulative):
        return ReceptiveField(None, field.last)
    if isinstance(relation, Banded):
        return _move(field, -max(relation.back, 0) / rate_in, max(relation.ahead, 0) / rate_in)
    if isinstance(relation, Window):
        before = int(relation.ends.before) if relation.ends is not None else 0
        first = (relation.skip - relation.up + 1) / rate_out - before / rate_in
        last = relation.skip / rate_out + (relation.span - 1 - before) / rate_in
        return _move(field, first, last)
    return field


def _move(field: ReceptiveField, first: Fraction, last: Fraction) -> ReceptiveField:
    return ReceptiveField(None if field.first is None else field.first + first, field.last + last)
