"""The body of a scan while it is wired, for every format."""

from collections.abc import Mapping, Sequence

from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.infer.unrolling import graft
from pulse.ops.concat import Concat
from pulse.ops.scan import Scan, ScanAxis
from pulse.ops.shape import AddAxis
from pulse.support.budget import current_spending
from pulse.typed import TypedGraph, TypedNetwork, add_source, sources
from pulse.wiring import wire

FIRST_AXIS = ScanAxis(0)
"""Frames along the first axis, forwards."""


class ScanBody:
    """One iteration of a scan, and what the scan feeds it.

    graph  the graph of the iteration
    """

    def __init__(self) -> None:
        self.graph = TypedGraph()
        self._states: dict[str, OutletId] = {}
        self._frames: dict[str, OutletId] = {}
        self._captures: dict[str, OutletId] = {}
        self._axes: list[ScanAxis] = []

    @property
    def has_frames(self) -> bool:
        """Whether anything changes with the iteration, so that there is a number of them."""
        return bool(self._frames)

    def add_state(self, name: str, fact: TypedFact, first: OutletId) -> OutletId:
        """Add a value that goes from iteration to iteration.

        fact     type and shape of the value
        first    its wire outside, before the first iteration
        Returns  its wire in the body, as do the other methods
        """
        return self._add(self._states, name, fact, first)

    def add_frames(
        self, name: str, fact: TypedFact, whole: OutletId, axis: ScanAxis = FIRST_AXIS
    ) -> OutletId:
        """Add a value that is another frame of a wire outside in each iteration."""
        self._axes.append(axis)
        return self._add(self._frames, name, fact, whole)

    def add_capture(self, name: str, fact: TypedFact, outlet: OutletId) -> OutletId:
        """Add a wire outside that every iteration reads."""
        return self._add(self._captures, name, fact, outlet)

    def _add(self, inputs: dict[str, OutletId], name: str, fact: TypedFact, outlet: OutletId) -> OutletId:
        inner = add_source(self.graph, name, fact)
        inputs[self.graph.label(inner)] = outlet
        return inner

    def wire(
        self,
        node: NodeContext,
        name: str,
        states: Sequence[OutletId],
        frames: Sequence[OutletId],
        axis: ScanAxis = FIRST_AXIS,
        origins: Mapping[str, str] | None = None,
    ) -> list[OutletId]:
        """Wire the scan into the graph of a node.

        name     the name of the scan
        states   wires of the body: the values of the states for the next iteration, in the order of their addition
        frames   wires of the body: what becomes a frame of each result
        axis     the axis and the direction in which the frames are joined
        origins  the origins of the nodes in the body
        Returns  the joined frames of each result, then each state after the last iteration
        """
        graph, results = self.graph, [*states, *frames]
        graph.inputs = sources(graph)
        graph.set_outputs(results, [f"result{index}" for index in range(len(results))])
        scan = Scan(
            TypedNetwork(graph, node.scope, f"{name}.body", {}, dict(origins or {})),
            tuple(self._states),
            tuple(self._frames),
            tuple(self._captures),
            tuple(self._axes),
            (axis,) * len(frames),
        )
        inputs = [*self._frames.values(), *self._states.values(), *self._captures.values()]
        return wire(node.graph, name, scan, inputs)

    def unroll(
        self, node: NodeContext, iterations: int, states: Sequence[OutletId], frames: Sequence[OutletId]
    ) -> list[OutletId]:
        """Wire a number of iterations, at least one, after each other; arguments and results as in ``wire``.

        All frames are scanned forwards.
        """
        assert not any(axis.backward for axis in self._axes)
        current_spending().take_nodes(iterations * len(self.graph.nodes), node.wire_name)
        inner = {self.graph.label(outlet): outlet for outlet in sources(self.graph)}
        current, count = list(self._states.values()), len(states)
        present = {inner[name]: outlet for name, outlet in self._captures.items()}
        rows: list[list[OutletId]] = [[] for _ in frames]
        body = TypedNetwork(self.graph, node.scope)
        for iteration in range(iterations):
            for (name, whole), axis in zip(self._frames.items(), self._axes):
                present[inner[name]] = node.entry(whole, axis.axis, iteration, f"{name}{iteration}")
            present |= dict(zip((inner[name] for name in self._states), current))
            outlets = graft(body, [*states, *frames], node.graph, present)
            current = outlets[:count]
            for slot, outlet in enumerate(outlets[count:]):
                rows[slot].append(node.wire(AddAxis(0), [outlet], f"row{slot}_{iteration}"))
        stacks = [
            parts[0] if iterations == 1 else node.wire(Concat(0), parts, f"rows{slot}")
            for slot, parts in enumerate(rows)
        ]
        return [*stacks, *current]
