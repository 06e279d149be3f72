"""The parts of a loop's body."""

from collections.abc import Mapping, Sequence

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.ops.source import Source
from pulse.support.record import record
from pulse.typed import TypedNetwork


@record(eq=False)
class LoopParts:
    """The roles of the variables of a loop.

    sources   variable -> the body's input, if its value is unknown
    written   lists -> the element that each iteration writes
    heads     the same lists -> the elements that were written before the first iteration
    last      lists of one element -> the element that each iteration writes
    states    all other values that pass from iteration to iteration
    read      elements that an iteration takes -> their tensor, outside the loop, and the first of them
    """

    sources: Mapping[int, OutletId]
    written: Mapping[int, OutletId]
    heads: Mapping[int, Sequence[OutletId]]
    last: Mapping[int, OutletId]
    states: Sequence[int]
    read: Mapping[OutletId, tuple[OutletId, TDim]]


def needed_inputs(
    model: TypedNetwork, targets: Sequence[OutletId], present: Mapping[OutletId, OutletId]
) -> set[OutletId]:
    """Return the inputs of a model that some outlets need, if the outlets in ``present`` have values."""
    nodes = (model.graph.nodes[node_id] for node_id in model.graph.order_after(present, targets))
    return {OutletId(node.id) for node in nodes if isinstance(node.op, Source)}
