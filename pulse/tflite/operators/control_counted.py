"""Loops over the frames of a stream: a WHILE that counts to a length is a scan.

The body is translated for iteration t, a symbol: a frame that it reads is a slice from k + t to k + t + 1 of a constant
of the loop, and a list that it writes is the entries before k + t, a frame, and the entries after it. Both are
replaced, which removes t.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

import numpy as np

from pulse.dim import Symbol, TDim, ge
from pulse.errors import DimError, FactError, LoadError
from pulse.facts import Array, TypedFact, is_symbolic
from pulse.graph import OutletId
from pulse.infer.counting import Counter, comparisons, iteration_count
from pulse.infer.scan_body import ScanBody
from pulse.infer.unrolling import NotUnrolledError, graft
from pulse.ops.concat import Concat
from pulse.ops.gather import Gather
from pulse.ops.op import Op
from pulse.ops.scan import ScanAxis
from pulse.ops.shape import AddAxis, RemoveAxis
from pulse.ops.slice import Slice
from pulse.ops.source import Source
from pulse.support.naming import free_name
from pulse.tflite.node import TfliteNode
from pulse.typed import TypedNetwork
from pulse.wiring import wire

ITERATION = "iteration"
BuildSubgraph = Callable[[str, Mapping[int, TypedFact]], TypedNetwork]
"""A subgraph of the node by its option, from the facts of its inputs."""


def scan(node: TfliteNode, run: BuildSubgraph) -> list[OutletId] | None:
    """Return the loop's outputs; None if it is not over frames, or its body needs the iteration number."""
    try:
        with node.scope.trial():
            parts = _Counted(node, run).find()
    except (LoadError, FactError, DimError, NotUnrolledError):
        return None
    return None if parts is None else parts.wire()


def _number(value: Array | None) -> TDim | None:
    if value is None or value.size != 1 or value.dtype.kind == "f":
        return None
    return TDim.of(value.ravel().tolist()[0])


@dataclass
class _Parts:
    """The parts of the body.

    iteration   the symbol of one of them
    iterations  how many there are
    counters    states that count iterations
    steady      states that no iteration changes
    lists       state -> the outlet of the body that is its frame of each iteration, and the first entry written
    carried     states that go from iteration to iteration
    reads       the outlets of the body that are frames: the steady state and the axis that they are of, and the first
    """

    node: TfliteNode
    body: TypedNetwork
    iteration: Symbol
    iterations: TDim
    counters: dict[int, Counter]
    steady: list[int]
    lists: dict[int, tuple[OutletId, TDim]] = field(default_factory=dict[int, tuple[OutletId, TDim]])
    carried: list[int] = field(default_factory=list[int])
    reads: dict[OutletId, tuple[int, int, TDim]] = field(
        default_factory=dict[OutletId, tuple[int, int, TDim]]
    )

    def wire(self) -> list[OutletId] | None:
        """Add a scan; return the loop's outputs from it. None if an iteration needs its own number."""
        node, body, scanned = self.node, self.body.graph, ScanBody()
        results = [body.outputs[state] for state in self.carried]
        results += [outlet for outlet, _ in self.lists.values()]
        needed = [body.nodes[node_id] for node_id in body.order_after(self.reads, results)]
        if any(
            _depends(item, self.iteration)
            for needed_node in needed
            for item in (needed_node.op, *(outlet.fact for outlet in needed_node.outputs))
        ):
            return None
        present: dict[OutletId, OutletId] = {}
        for index, (outlet, (state, axis, start)) in enumerate(self.reads.items()):
            fact, frames = node.graph.fact(node.input(state)), self._run_through(state, axis, start)
            frame = scanned.add_frames(f"frame{index}", fact.without_axis(axis), frames, ScanAxis(axis))
            has_axis = body.fact(outlet).rank == fact.rank
            present[outlet] = (
                wire(scanned.graph, f"read{index}", AddAxis(axis), [frame])[0] if has_axis else frame
            )
        for state in self.carried:
            name, first = f"in{state}", node.input(state)
            present[body.find(name)] = scanned.add_state(name, node.graph.fact(first), first)
        for source in needed:
            outlet = OutletId(source.id)
            if isinstance(source.op, Source) and outlet not in present:
                captured = node.input(int(source.name.removeprefix("in")))
                present[outlet] = scanned.add_capture(source.name, source.op.fact, captured)
        outlets = graft(self.body, results, scanned.graph, present)
        next_states, written = outlets[: len(self.carried)], outlets[len(self.carried) :]
        rows = [
            wire(scanned.graph, f"row{k}", RemoveAxis(0), [outlet])[0] for k, outlet in enumerate(written)
        ]
        wires = scanned.wire(node, f"{node.wire_name}.scan", next_states, rows)
        outputs = {state: node.input(state) for state in self.steady}
        outputs |= {state: self._whole_list(state, outlet) for state, outlet in zip(self.lists, wires)}
        outputs |= dict(zip(self.carried, wires[len(rows) :]))
        for state, counter in self.counters.items():
            last = counter.start + self.iterations * counter.step
            outputs[state] = node.dim_constant(last, f"count{state}")
        return [outputs[state] for state in range(len(node.inputs))]

    def _run_through(self, state: int, axis: int, start: TDim) -> OutletId:
        """Return the frames of a state that the iterations read."""
        whole = self.node.input(state)
        if start == 0 and self.node.graph.fact(whole).shape[axis] == self.iterations:
            return whole
        frames = Slice(axis, start, start + self.iterations)
        return self.node.wire(frames, [whole], f"frames{state}_{axis}_{start}")

    def _whole_list(self, state: int, rows: OutletId) -> OutletId:
        """Return a list with the rows that the iterations write between those that it had."""
        first = self.node.input(state)
        start, size = self.lists[state][1], self.node.graph.fact(first).shape[0]
        end = start + self.iterations
        parts = [rows]
        if start != 0:
            parts.insert(0, self.node.wire(Slice(0, TDim.of(0), start), [first], f"before{state}"))
        if end != size:
            parts.append(self.node.wire(Slice(0, end, size), [first], f"after{state}"))
        return rows if len(parts) == 1 else self.node.wire(Concat(0), parts, f"list{state}")


def _depends(item: object, symbol: Symbol) -> bool:
    """Return whether an op, a fact or a part of one contains a symbol."""
    if isinstance(item, TDim):
        return symbol in item.symbols
    if isinstance(item, np.ndarray):
        value = cast("Array", item)
        return is_symbolic(value) and any(
            _depends(TDim.of(element), symbol) for element in value.ravel().tolist()
        )
    if isinstance(item, tuple):
        return any(_depends(part, symbol) for part in cast("tuple[object, ...]", item))
    if isinstance(item, Op | TypedFact):
        return any(_depends(getattr(item, part.name), symbol) for part in fields(cast("Any", item)))
    return False


class _Counted:
    """A loop while it is looked at."""

    def __init__(self, node: TfliteNode, run: BuildSubgraph) -> None:
        self._node, self._run = node, run
        self._facts = [node.graph.fact(node.input(slot)) for slot in range(len(node.inputs))]
        self._symbol = node.scope.symbol(free_name(ITERATION, node.scope.knows))
        self._iteration = TDim.of(self._symbol)

    def find(self) -> _Parts | None:
        node = self._node
        node.scope.assume(ge(self._iteration, 0))
        firsts = {index: _number(fact.value) for index, fact in enumerate(self._facts) if not fact.rank}
        condition = self._run("CondSubgraphIndex", self._body_facts([]))
        parts = comparisons(condition, condition.graph.outputs[0], self._sources(condition))
        compared = {part.variable for part in parts if part is not None}
        counting = {
            index: Counter(first, 1)
            for index, first in firsts.items()
            if first is not None and (index in compared or first == 0)
        }
        iterations = self._iterations(
            [index for index in range(len(self._facts)) if index not in counting], counting
        )
        body = self._body([], counting, iterations)
        unchanged, counting = self._unchanged_states(body, []), self._counters(body, counting)
        known = [index for index in unchanged if self._facts[index].value is not None]
        iterations = self._iterations(known, counting)
        body = self._body(known, counting, iterations)
        if (self._unchanged_states(body, known), self._counters(body, counting)) != (unchanged, counting):
            return None
        parts = _Parts(node, body, self._symbol, iterations, counting, unchanged)
        for index in range(len(self._facts)):
            if index not in counting and index not in unchanged:
                self._sort(parts, index)
        for reader in body.graph.nodes:
            self._note_read(parts, OutletId(reader.id))
        return parts if parts.reads else None

    def _body_facts(self, known: Collection[int]) -> dict[int, TypedFact]:
        """Return the facts of the states in each iteration, with the values of those that stay as they are."""
        return {
            index: fact if index in known else TypedFact(fact.dtype, fact.shape)
            for index, fact in enumerate(self._facts)
        }

    def _body(
        self, known: Collection[int], counting: Mapping[int, Counter], iterations: TDim
    ) -> TypedNetwork:
        """Return the body in iteration t."""
        self._node.scope.assume(ge(iterations - self._iteration, 1))
        facts = self._body_facts(known)
        for index, counter in counting.items():
            value = np.array(self._value(counter), object)
            facts[index] = TypedFact(self._facts[index].dtype, (), value)
        return self._run("BodySubgraphIndex", facts)

    def _sources(self, model: TypedNetwork) -> dict[OutletId, int]:
        """Return the inputs of a model that it reads -> the number of the state."""
        places = {f"in{index}": index for index in range(len(self._facts))}
        outlets = [OutletId(node.id) for node in model.graph.nodes]
        labels = [
            (outlet, model.graph.label(outlet)) for outlet in outlets if model.graph.node(outlet).outputs
        ]
        return {outlet: places[label] for outlet, label in labels if label in places}

    def _value(self, counter: Counter) -> TDim:
        """Return the value of a counter in iteration t."""
        return counter.start + self._iteration * counter.step

    def _counters(self, body: TypedNetwork, counting: Mapping[int, Counter]) -> dict[int, Counter]:
        """Return those of some states that the body increases by a constant, with it as their step."""
        counters: dict[int, Counter] = {}
        for index, counter in counting.items():
            after = _number(body.graph.fact(body.graph.outputs[index]).value)
            step = None if after is None else after - self._value(counter)
            if step is not None and step.is_const and step != 0:
                counters[index] = Counter(counter.start, int(step))
        return counters

    def _unchanged_states(self, body: TypedNetwork, known: Collection[int]) -> list[int]:
        """Return the states that the body returns as they are, given those whose values it was built with."""
        unchanged: list[int] = []
        for index, outlet in enumerate(body.graph.outputs):
            before, after = self._facts[index].value, body.graph.fact(outlet).value
            stays = self._is_input(body, outlet, index)
            if index in known and before is not None and after is not None:
                stays = stays or np.array_equal(before, after)
            if stays:
                unchanged.append(index)
        return unchanged

    def _is_input(self, body: TypedNetwork, outlet: OutletId, index: int) -> bool:
        return body.graph.label(outlet) == f"in{index}"

    def _iterations(self, known: Collection[int], counting: Mapping[int, Counter]) -> TDim:
        """Return how often the loop runs its body, given the states that stay.

        Raises NotUnrolledError: the condition is not that counters are below limits
        """
        condition = self._run("CondSubgraphIndex", self._body_facts(known))
        return iteration_count(condition, self._sources(condition), counting)

    def _start(self, position: TDim | None, size: TDim, iterations: TDim) -> TDim | None:
        """Return the first of the positions of all iterations; None unless they follow each other within a size."""
        if position is None:
            return None
        start = position - self._iteration
        fits = start.prove_ge(0).yes and size.prove_ge(start + iterations).yes
        return start if fits and not _depends(start, self._symbol) else None

    def _sort(self, parts: _Parts, index: int) -> None:
        """Sort the states: lists that each iteration writes one frame of, and those that go from iteration to
        iteration.
        """
        graph = parts.body.graph
        producer = graph.node(graph.outputs[index])
        if isinstance(producer.op, Concat) and producer.op.axis == 0 and len(producer.inputs) == 3:
            before, row, after = (graph.node(outlet) for outlet in producer.inputs)
            size = self._facts[index].shape[0]
            position = before.op.end if isinstance(before.op, Slice) else None
            start = self._start(position, size, parts.iterations)
            if (
                position is not None
                and start is not None
                and self._slices(parts, before.id, index, TDim.of(0), position)
                and self._slices(parts, after.id, index, position + 1, size)
                and graph.fact(OutletId(row.id)).shape[0] == 1
            ):
                parts.lists[index] = producer.inputs[1], start
                return
        parts.carried.append(index)

    def _slices(self, parts: _Parts, node_id: int, index: int, start: TDim, end: TDim) -> bool:
        node = parts.body.graph.nodes[node_id]
        return (
            isinstance(node.op, Slice)
            and (node.op.axis, node.op.start, node.op.end, node.op.step) == (0, start, end, 1)
            and self._is_input(parts.body, node.inputs[0], index)
        )

    def _note_read(self, parts: _Parts, outlet: OutletId) -> None:
        """Take note of an outlet that is a frame of a state that no iteration changes."""
        graph = parts.body.graph
        reader = graph.node(outlet)
        position: TDim | None = None
        if isinstance(reader.op, Gather):
            index = graph.fact(reader.inputs[1])
            position = None if index.rank else _number(index.value)
        elif isinstance(reader.op, Slice) and reader.op.end == reader.op.start + 1:
            position = reader.op.start
        if position is None or not isinstance(reader.op, Gather | Slice):
            return
        label, axis = graph.label(reader.inputs[0]), reader.op.axis
        state = next((index for index in parts.steady if label == f"in{index}"), None)
        if state is not None:
            start = self._start(position, self._facts[state].shape[axis], parts.iterations)
            if start is not None:
                parts.reads[outlet] = state, axis, start
