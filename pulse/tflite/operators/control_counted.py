"""Loops over the frames of a stream: a WHILE that counts to a length is a scan.

The body is translated for iteration t, a symbol: a frame that it reads is a slice from k + t to k + t + 1 of a constant
of the loop, and a list that it writes is the entries before k + t, a frame, and the entries after it. Both are
replaced, which removes t.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

import numpy as np

from pulse.dim import Symbol, TDim, ge
from pulse.errors import DimError, FactError, LoadError
from pulse.facts import Array, TypedFact, is_symbolic
from pulse.graph import OutletId
from pulse.infer.counted_loop import CountedLoop, FramesRead
from pulse.infer.counting import Counter, comparisons, iteration_count
from pulse.infer.unrolling import NotUnrolledError
from pulse.ops.concat import Concat
from pulse.ops.gather import Gather
from pulse.ops.op import Op
from pulse.ops.shape import RemoveAxis
from pulse.ops.slice import Slice
from pulse.support.naming import free_name
from pulse.tflite.node import TfliteNode
from pulse.typed import TypedNetwork
from pulse.wiring import wire

ITERATION = "iteration"
BuildSubgraph = Callable[[str, Mapping[int, TypedFact]], TypedNetwork]
"""A subgraph of the node by its option, from the facts of its inputs."""


def scan(node: TfliteNode, run: BuildSubgraph) -> list[OutletId] | None:
    """Return the loop's outputs; None if it is not over frames, or its body needs the iteration number."""
    counted = _Counted(node, run)
    try:
        with node.scope.trial():
            loop = counted.find()
    except (LoadError, FactError, DimError, NotUnrolledError):
        return None
    return None if loop is None else counted.join_lists(loop.wire())


def _number(value: Array | None) -> TDim | None:
    if value is None or value.size != 1 or value.dtype.kind == "f":
        return None
    return TDim.of(value.ravel().tolist()[0])


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
    """A loop whose iterations are examined."""

    def __init__(self, node: TfliteNode, run: BuildSubgraph) -> None:
        self._node, self._run = node, run
        self._facts = [node.graph.fact(node.input(slot)) for slot in range(len(node.inputs))]
        self._starts: dict[int, TDim] = {}
        """The first entry of each list that is written."""

    def find(self) -> CountedLoop | None:
        """Return the roles of the states; None if the loop is not over frames."""
        node = self._node
        self._symbol = node.scope.symbol(free_name(ITERATION, node.scope.knows))
        self._iteration = TDim.of(self._symbol)
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
        states: dict[int, OutletId] = {}
        lists: dict[int, OutletId] = {}
        for index, outlet in enumerate(body.graph.outputs):
            if index not in counting and index not in unchanged:
                row = self._written_row(body, index, iterations)
                (states if row is None else lists)[index] = outlet if row is None else row
        reads = self._reads(body, unchanged, iterations)
        results = [*states.values(), *lists.values()]
        needed = [body.graph.nodes[node_id] for node_id in body.graph.order_after(reads, results)]
        facts = (outlet.fact for needed_node in needed for outlet in needed_node.outputs)
        if not reads or any(_depends(item, self._symbol) for item in (*(n.op for n in needed), *facts)):
            return None
        first = [node.input(slot) for slot in range(len(node.inputs))]
        return CountedLoop(
            node,
            body,
            iterations,
            first,
            counters=counting,
            sources=self._sources(body),
            states=states,
            lists=lists,
            reads=reads,
        )

    def join_lists(self, outlets: list[OutletId]) -> list[OutletId]:
        """Put the rows that the iterations write between those that their lists had."""
        for state, start in self._starts.items():
            first, rows = self._node.input(state), outlets[state]
            size = self._node.graph.fact(first).shape[0]
            end = start + self._node.graph.fact(rows).shape[0]
            parts = [rows]
            if start != 0:
                parts.insert(0, self._node.wire(Slice(0, TDim.of(0), start), [first], f"before{state}"))
            if end != size:
                parts.append(self._node.wire(Slice(0, end, size), [first], f"after{state}"))
            if len(parts) > 1:
                outlets[state] = self._node.wire(Concat(0), parts, f"list{state}")
        return outlets

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
            stays = _is_input(body, outlet, index)
            if index in known and before is not None and after is not None:
                stays = stays or np.array_equal(before, after)
            if stays:
                unchanged.append(index)
        return unchanged

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

    def _written_row(self, body: TypedNetwork, index: int, iterations: TDim) -> OutletId | None:
        """Return the frame that an iteration writes to a list, and note its first one; None: it is no such list."""
        graph = body.graph
        producer = graph.node(graph.outputs[index])
        if not isinstance(producer.op, Concat) or producer.op.axis or len(producer.inputs) != 3:
            return None
        before, row, after = (graph.node(outlet) for outlet in producer.inputs)
        size = self._facts[index].shape[0]
        position = before.op.end if isinstance(before.op, Slice) else None
        start = self._start(position, size, iterations)
        if (
            position is None
            or start is None
            or not self._slices(body, before.id, index, TDim.of(0), position)
            or not self._slices(body, after.id, index, position + 1, size)
            or graph.fact(OutletId(row.id)).shape[0] != 1
        ):
            return None
        self._starts[index] = start
        return wire(graph, f"row{index}", RemoveAxis(0), [producer.inputs[1]])[0]

    def _slices(self, body: TypedNetwork, node_id: int, index: int, start: TDim, end: TDim) -> bool:
        node = body.graph.nodes[node_id]
        return (
            isinstance(node.op, Slice)
            and (node.op.axis, node.op.start, node.op.end, node.op.step) == (0, start, end, 1)
            and _is_input(body, node.inputs[0], index)
        )

    def _reads(
        self, body: TypedNetwork, unchanged: Sequence[int], iterations: TDim
    ) -> dict[OutletId, FramesRead]:
        """Return the outlets that are frames of states that no iteration changes."""
        graph, reads = body.graph, dict[OutletId, FramesRead]()
        state_of = {f"in{index}": index for index in unchanged}
        for reader in graph.nodes:
            position: TDim | None = None
            if isinstance(reader.op, Gather):
                index = graph.fact(reader.inputs[1])
                position = None if index.rank else _number(index.value)
            elif isinstance(reader.op, Slice) and reader.op.end == reader.op.start + 1:
                position = reader.op.start
            if position is None or not isinstance(reader.op, Gather | Slice):
                continue
            state, axis = state_of.get(graph.label(reader.inputs[0])), reader.op.axis
            if state is not None:
                start = self._start(position, self._facts[state].shape[axis], iterations)
                if start is not None:
                    reads[OutletId(reader.id)] = FramesRead(self._node.input(state), axis, start)
        return reads


def _is_input(body: TypedNetwork, outlet: OutletId, index: int) -> bool:
    """Return whether a wire of a body is its input of this number."""
    return body.graph.label(outlet) == f"in{index}"
