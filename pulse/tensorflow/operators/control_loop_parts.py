"""The parts of a loop's body."""

from collections.abc import Mapping, Sequence

from pulse.dim import TDim
from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.ops.source import Source
from pulse.support.record import record
from pulse.typed import TypedGraph, TypedNetwork, add_source


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


class ScanBody:
    """The body of a scan while it is made, and what the scan feeds it.

    graph     the graph of one iteration
    present   wires of the loop's body that are sources here already
    states, first    the labels of states, and their first values outside
    frames, x        the labels of what changes with the iteration, and the wires outside that have all of it
    names, captures  the labels of what stays, and the wires outside
    """

    def __init__(self) -> None:
        self.graph = TypedGraph()
        self.present: dict[OutletId, OutletId] = {}
        self.states: list[str] = []
        self.first: list[OutletId] = []
        self.frames: list[str] = []
        self.x: list[OutletId] = []
        self.names: list[str] = []
        self.captures: list[OutletId] = []

    def add_source(self, name: str, fact: TypedFact) -> OutletId:
        return add_source(self.graph, name, fact)

    def add_state(self, inner: OutletId, first: OutletId) -> None:
        self.states.append(self.graph.label(inner))
        self.first.append(first)

    def add_frames(self, inner: OutletId, x: OutletId) -> None:
        self.frames.append(self.graph.label(inner))
        self.x.append(x)

    def add_capture(self, inner: OutletId, captured: OutletId) -> None:
        self.names.append(self.graph.label(inner))
        self.captures.append(captured)


def needed_inputs(
    model: TypedNetwork, targets: Sequence[OutletId], present: Mapping[OutletId, OutletId]
) -> set[OutletId]:
    """Return the inputs of a model that some outlets need, if the outlets in ``present`` have values."""
    nodes = (model.graph.nodes[node_id] for node_id in model.graph.order_after(present, targets))
    return {OutletId(node.id) for node in nodes if isinstance(node.op, Source)}
