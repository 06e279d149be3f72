"""Loops over the frames of a stream: a WHILE that counts from 0 to a length is a scan.

The body is translated for iteration t, a symbol: a frame that it reads is a slice from t to t + 1 of a constant of the
loop, and a list that it writes is the entries before t, a frame, and the entries after it. Both are replaced, which
removes t.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, cast

import numpy as np

from pulse.dim import Symbol, TDim, ge
from pulse.errors import DimError, FactError, LoadError
from pulse.facts import Array, TypedFact, is_symbolic
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Elementwise
from pulse.ops.gather import Gather
from pulse.ops.op import Op
from pulse.ops.scan import Scan, ScanAxis
from pulse.ops.shape import AddAxis, RemoveAxis
from pulse.ops.slice import Slice
from pulse.ops.source import Source
from pulse.support.budget import current_spending
from pulse.support.naming import free_name
from pulse.tflite.node import TfliteNode
from pulse.typed import TypedGraph, TypedNetwork, add_source, sources
from pulse.wiring import wire

ITERATION = "iteration"
BuildSubgraph = Callable[[str, Mapping[int, TypedFact]], TypedNetwork]
"""A subgraph of the node by its option, from the facts of its inputs."""


def scan(node: TfliteNode, run: BuildSubgraph) -> list[OutletId] | None:
    """Return the loop's outputs; None if it is not over frames, or its body needs the iteration number."""
    try:
        with node.scope.trial():
            parts = _Counted(node, run).find()
    except (LoadError, FactError, DimError):
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
    lists       state -> the outlet of the body that is its frame of each iteration
    carried     states that go from iteration to iteration
    reads       the outlets of the body that are frames: the steady state and the axis that they are of
    """

    node: TfliteNode
    body: TypedNetwork
    iteration: Symbol
    iterations: TDim
    counters: list[int]
    steady: list[int]
    lists: dict[int, OutletId] = field(default_factory=dict[int, OutletId])
    carried: list[int] = field(default_factory=list[int])
    reads: dict[OutletId, tuple[int, int]] = field(default_factory=dict[OutletId, tuple[int, int]])

    def wire(self) -> list[OutletId] | None:
        """Add a scan; return the loop's outputs from it."""
        node, graph = self.node, TypedGraph()
        in_body: dict[OutletId, OutletId] = {}
        frames: list[tuple[str, int, int]] = []
        for index, (outlet, (state, axis)) in enumerate(self.reads.items()):
            fact = self.node.graph.fact(self.node.input(state))
            part = TypedFact(fact.dtype, (*fact.shape[:axis], *fact.shape[axis + 1 :]))
            frame = add_source(graph, f"frame{index}", part)
            has_axis = self.body.graph.fact(outlet).rank == fact.rank
            in_body[outlet] = wire(graph, f"read{index}", AddAxis(axis), [frame])[0] if has_axis else frame
            frames.append((f"frame{index}", state, axis))
        results = [self.body.graph.outputs[state] for state in self.carried] + list(self.lists.values())
        copied = _copy(self.body, results, graph, in_body, self.iteration)
        if copied is None:
            return None
        state_names = [f"in{state}" for state in self.carried]
        for state in self.carried:
            if self.body.graph.find(f"in{state}") not in copied:
                add_source(graph, f"in{state}", node.graph.fact(node.input(state)))
        graph.inputs = sources(graph)
        frame_names = [name for name, _, _ in frames]
        captures = [
            name for name in map(graph.label, graph.inputs) if name not in (*state_names, *frame_names)
        ]
        rows = [
            wire(graph, f"row{k}", RemoveAxis(0), [copied[outlet]])[0]
            for k, outlet in enumerate(self.lists.values())
        ]
        next_states = [copied[self.body.graph.outputs[state]] for state in self.carried]
        graph.set_outputs([*next_states, *rows], [f"out{k}" for k in range(len(next_states) + len(rows))])
        inner = TypedNetwork(graph, node.scope, node.wire_name, spending=current_spending())
        op = Scan(
            inner,
            tuple(state_names),
            tuple(frame_names),
            tuple(captures),
            tuple(ScanAxis(axis) for _, _, axis in frames),
            tuple(ScanAxis(0) for _ in rows),
        )
        operands = [node.input(state) for _, state, _ in frames]
        operands += [node.input(state) for state in self.carried]
        operands += [node.input(int(name.removeprefix("in"))) for name in captures]
        wires = wire(node.graph, f"{node.wire_name}.scan", op, operands)
        outputs = {state: node.input(state) for state in self.steady}
        outputs |= dict(zip(self.lists, wires)) | dict(zip(self.carried, wires[len(rows) :]))
        outputs |= {state: node.dims_constant([self.iterations], f"count{state}") for state in self.counters}
        return [outputs[state] for state in range(len(node.inputs))]


def _copy(
    body: TypedNetwork,
    results: Sequence[OutletId],
    graph: TypedGraph,
    inputs: Mapping[OutletId, OutletId],
    iteration: Symbol,
) -> dict[OutletId, OutletId] | None:
    """Copy the nodes that some outlets need into another graph; None if they depend on the iteration's number."""
    wires, stack, needed = dict(inputs), list(results), set[int]()
    while stack:
        outlet = stack.pop()
        if outlet not in wires and outlet.node not in needed:
            needed.add(outlet.node)
            stack += body.graph.nodes[outlet.node].inputs
    for node_id in body.graph.order(list(results)):
        if node_id not in needed:
            continue
        node = body.graph.nodes[node_id]
        if _depends(node.op, iteration) or any(_depends(outlet.fact, iteration) for outlet in node.outputs):
            return None
        if isinstance(node.op, Source):
            outlets = graph.add(node.name, node.op, (), [node.op.fact])
        else:
            outlets = wire(graph, node.name, node.op, [wires[outlet] for outlet in node.inputs])
        wires.update({OutletId(node_id, slot): outlet for slot, outlet in enumerate(outlets)})
    return wires


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
        start_values = {index: _number(fact.value) for index, fact in enumerate(self._facts) if not fact.rank}
        zeros = [index for index, value in start_values.items() if value is not None and value == 0]
        node.scope.assume(ge(self._iteration, 0))
        plain = {index: TypedFact(fact.dtype, fact.shape) for index, fact in enumerate(self._facts)}
        value = np.empty((), object)
        value[()] = self._iteration
        counting = {index: TypedFact(self._facts[index].dtype, (), value) for index in zeros}
        steady = {
            index: fact
            for index, fact in enumerate(self._facts)
            if index not in zeros and fact.value is not None
        }
        iterations = self._iterations({**plain, **steady, **counting})
        if iterations is None or not zeros:
            return None
        node.scope.assume(ge(iterations - self._iteration, 1))
        body = self._run("BodySubgraphIndex", {**plain, **counting})
        unchanged = [index for index in plain if self._is_input(body, body.graph.outputs[index], index)]
        known_facts = {
            index: self._facts[index] for index in unchanged if self._facts[index].value is not None
        }
        body = self._run("BodySubgraphIndex", {**plain, **known_facts, **counting})
        parts = _Parts(node, body, self._symbol, iterations, zeros, unchanged)
        for index in plain:
            if index in zeros:
                after = _number(body.graph.fact(body.graph.outputs[index]).value)
                if after is None or after != self._iteration + 1:
                    return None
            elif index not in unchanged:
                self._sort(parts, index)
        for reader in body.graph.nodes:
            self._note_read(parts, OutletId(reader.id))
        return parts if parts.reads else None

    def _is_input(self, body: TypedNetwork, outlet: OutletId, index: int) -> bool:
        return body.graph.label(outlet) == f"in{index}"

    def _iterations(self, facts: Mapping[int, TypedFact]) -> TDim | None:
        """Return the length that the condition compares the iteration with; of several the one that all agree on."""
        cond = self._run("CondSubgraphIndex", facts)
        counts: list[TDim] = []
        stack = [cond.graph.outputs[0]]
        while stack:
            producer = cond.graph.node(stack.pop())
            if isinstance(producer.op, Elementwise) and producer.op.kind == "and":
                stack += producer.inputs
                continue
            if not isinstance(producer.op, Elementwise) or producer.op.kind != "less":
                return None
            iteration, limit = (_number(cond.graph.fact(outlet).value) for outlet in producer.inputs)
            if iteration is None or limit is None or iteration != self._iteration:
                return None
            counts.append(limit)
        return counts[0] if all(limit == counts[0] for limit in counts) else None

    def _sort(self, parts: _Parts, index: int) -> None:
        """Sort the states: lists that each iteration writes one frame of, and those that go from iteration to
        iteration.
        """
        graph, iteration = parts.body.graph, self._iteration
        producer = graph.node(graph.outputs[index])
        if isinstance(producer.op, Concat) and producer.op.axis == 0 and len(producer.inputs) == 3:
            before, row, after = (graph.node(outlet) for outlet in producer.inputs)
            fits = self._slices(parts, before.id, index, TDim.of(0), iteration)
            fits = fits and self._slices(parts, after.id, index, iteration + 1, parts.iterations)
            if (
                fits
                and graph.fact(OutletId(row.id)).shape[0] == 1
                and self._facts[index].shape[0] == parts.iterations
            ):
                parts.lists[index] = producer.inputs[1]
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
        graph, iteration = parts.body.graph, self._iteration
        reader = graph.node(outlet)
        if isinstance(reader.op, Gather):
            index = graph.fact(reader.inputs[1])
            frame = not index.rank and _number(index.value) == iteration
        else:
            frame = isinstance(reader.op, Slice) and (reader.op.start, reader.op.end) == (
                iteration,
                iteration + 1,
            )
        if not frame or not isinstance(reader.op, Gather | Slice):
            return
        label, axis = graph.label(reader.inputs[0]), reader.op.axis
        state = next((index for index in parts.steady if label == f"in{index}"), None)
        if state is not None and self._facts[state].shape[axis] == parts.iterations:
            parts.reads[outlet] = state, axis
