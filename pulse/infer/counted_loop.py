"""A loop that counts: its iterations one after the other if they are few, else a scan; for every format."""

from collections.abc import Mapping, Sequence

import numpy as np

from pulse.dim import TDim
from pulse.facts import I64, DType, TypedFact
from pulse.graph import OutletId
from pulse.infer.counting import Counter
from pulse.infer.node_context import NodeContext
from pulse.infer.scan_body import ScanBody
from pulse.infer.unrolling import MAX_ITERATIONS, MAX_NODES, NotUnrolledError, graft
from pulse.ops.elementwise import Cast
from pulse.ops.scan import ScanAxis
from pulse.ops.shape import AddAxis
from pulse.ops.slice import Slice
from pulse.ops.source import Source
from pulse.ops.time_position import Range
from pulse.support.record import record
from pulse.typed import TypedNetwork
from pulse.wiring import wire


@record
class FramesRead:
    """What an iteration reads of a wire outside the loop: the next one of its frames.

    whole  the wire
    axis   the axis of the frames
    start  the first frame that is read
    step   how many frames later the next one is
    """

    whole: OutletId
    axis: int
    start: TDim
    step: int = 1


@record(eq=False)
class CountedLoop:
    """The roles of the variables of a loop. Those without one do not change.

    node        the loop
    body        one iteration
    iterations  how many there are; not the number 0
    first       the variables before the loop
    counters    variables that count iterations
    sources     inputs of the body -> their variables
    states      variables that pass from iteration to iteration -> their next values in the body
    lists       lists -> the frames that each iteration writes, in their order
    reads       wires of the body that are frames, with or without an axis for them
    """

    node: NodeContext
    body: TypedNetwork
    iterations: TDim
    first: Sequence[OutletId]
    counters: Mapping[int, Counter]
    sources: Mapping[OutletId, int]
    states: Mapping[int, OutletId]
    lists: Mapping[int, OutletId]
    reads: Mapping[OutletId, FramesRead]

    def wire(self) -> list[OutletId]:
        """Add the loop; return the variables after it, of each list the frames that were written.

        Raises NotUnrolledError: a counter that is read begins with a size, in a loop of unknown length
        """
        scanned = ScanBody()
        results = self._wire_body(scanned)
        states, frames = results[: len(self.states)], results[len(self.states) :]
        count = int(self.iterations) if self.iterations.is_const else MAX_ITERATIONS + 1
        if count <= MAX_ITERATIONS and count * len(self.body.graph.nodes) <= MAX_NODES:
            outlets = scanned.unroll(self.node, count, states, frames)
        else:
            outlets = scanned.wire(self.node, self.node.wire_name, states, frames, origins=self.body.origins)
        after = dict(zip([*self.lists, *self.states], outlets))
        after |= {variable: self._last_count(variable) for variable in self.counters}
        return [after.get(variable, first) for variable, first in enumerate(self.first)]

    def _wire_body(self, scanned: ScanBody) -> list[OutletId]:
        """Wire an iteration; return its states and frames."""
        graph, body = self.node.graph, self.body.graph
        own_sources = {variable: source for source, variable in self.sources.items()}
        present: dict[OutletId, OutletId] = {}
        for variable in self.states:
            first, source = self.first[variable], own_sources.get(variable)
            name = f"state{variable}" if source is None else body.label(source)
            state = scanned.add_state(name, graph.fact(first), first)
            if source is not None:
                present[source] = state
        for index, (outlet, read) in enumerate(self.reads.items()):
            fact = graph.fact(read.whole)
            part = fact.without_axis(read.axis)
            frame = scanned.add_frames(f"frame{index}", part, self._frames(read), ScanAxis(read.axis))
            if body.fact(outlet).rank == fact.rank:
                (frame,) = wire(scanned.graph, f"wide{index}", AddAxis(read.axis), [frame])
            present[outlet] = frame
        results = [*self.states.values(), *self.lists.values()]
        needed = needed_inputs(self.body, results, present)
        for source, variable in self.sources.items():
            if source in needed and source not in present:
                present[source] = self._add_input(scanned, source, variable)
        if not scanned.has_frames:
            numbers = self._numbers(0, 1, I64, "iterations")
            scanned.add_frames("iteration", TypedFact(I64, ()), numbers)
        outlets = graft(self.body, results, scanned.graph, present)
        for index, variable in enumerate(self.states):
            dtype, next_dtype = (
                graph.fact(self.first[variable]).dtype,
                scanned.graph.fact(outlets[index]).dtype,
            )
            if (
                next_dtype != dtype
                and np.issubdtype(next_dtype, np.integer)
                and np.issubdtype(dtype, np.integer)
            ):
                outlets[index] = wire(scanned.graph, f"next{index}", Cast(dtype), [outlets[index]])[0]
        return outlets

    def _add_input(self, scanned: ScanBody, source: OutletId, variable: int) -> OutletId:
        """Add another input of an iteration: a value that stays, or a counter, whose values are frames.

        Raises NotUnrolledError: the counter begins with a size, in a loop of unknown length
        """
        node, name, first = self.node, self.body.graph.label(source), self.first[variable]
        fact, counter = node.graph.fact(first), self.counters.get(variable)
        if counter is None:
            return scanned.add_capture(name, fact, first)
        if counter.start.is_const:
            numbers = self._numbers(int(counter.start), counter.step, fact.dtype, f"counter{variable}")
        elif self.iterations.is_const and int(self.iterations) <= MAX_ITERATIONS:
            values = [counter.start + index * counter.step for index in range(int(self.iterations))]
            numbers = node.dims_constant(values, f"counter{variable}")
        else:
            raise NotUnrolledError
        return scanned.add_frames(name, node.graph.fact(numbers).without_axis(0), numbers)

    def _numbers(self, start: int, step: int, dtype: DType, name: str) -> OutletId:
        return self.node.wire(Range(start, step, self.iterations, dtype), [], name)

    def _frames(self, read: FramesRead) -> OutletId:
        """Return the frames that the iterations read."""
        size = self.node.graph.fact(read.whole).shape[read.axis]
        if (
            read.start == 0
            and read.step == 1
            and (size == self.iterations or size.prove_eq(self.iterations).yes)
        ):
            return read.whole
        frames = Slice(read.axis, read.start, read.start + self.iterations * read.step, read.step)
        return self.node.wire(frames, [read.whole], f"frames{read.whole.node}")

    def _last_count(self, variable: int) -> OutletId:
        counter, dtype = self.counters[variable], self.node.graph.fact(self.first[variable]).dtype
        value = counter.start + self.iterations * counter.step
        if not value.is_const:
            return self.node.dim_constant(value, f"counter{variable}_last")
        return self.node.constant(np.array(int(value), dtype), f"counter{variable}_last")


def needed_inputs(
    model: TypedNetwork, targets: Sequence[OutletId], present: Mapping[OutletId, OutletId]
) -> set[OutletId]:
    """Return the inputs of a model that some outlets need, if the outlets in ``present`` have values."""
    nodes = (model.graph.nodes[node_id] for node_id in model.graph.order_after(present, targets))
    return {OutletId(node.id) for node in nodes if isinstance(node.op, Source)}
