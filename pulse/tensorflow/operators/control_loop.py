"""Loops. One that counts, and takes and makes one element of a list in each iteration, is a scan over frames."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from pulse.dim import TDim
from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.infer.counting import Counter, counters, iteration_count, uncast
from pulse.infer.scan_body import ScanBody
from pulse.infer.unrolling import ENDLESS, MAX_ITERATIONS, MAX_NODES, NotUnrolledError, graft, retire_from
from pulse.ops.concat import Concat
from pulse.ops.control import Loop
from pulse.ops.elementwise import Cast
from pulse.ops.shape import AddAxis, RemoveAxis
from pulse.ops.slice import Slice
from pulse.ops.time_position import Range
from pulse.support.budget import current_spending
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.nodes import LibraryFunction, NodeOutput
from pulse.tensorflow.operators.control_lists import ListItem, ListWrite, ReservedList
from pulse.tensorflow.operators.control_loop_parts import LoopParts, needed_inputs
from pulse.tensorflow.registry import tensorflow_op
from pulse.typed import TypedGraph, TypedNetwork, add_source, known_value, sources
from pulse.wiring import wire


@tensorflow_op("While", "StatelessWhile")
def loop(node: TensorflowNode) -> list[OutletId]:
    """Unroll a loop of few iterations; otherwise write a scan, or else an op that decides while running."""
    return _While(node).wire()


class _While:
    """A loop while it is translated."""

    def __init__(self, node: TensorflowNode) -> None:
        self._node = node
        self._first = node.given_inputs()
        self._function: LibraryFunction = node.functions.find(node.function("body"))
        condition = node.functions.find(node.function("cond"))
        count = len(self._first)
        sizes = (len(self._function.inputs), len(self._function.outputs), len(condition.inputs))
        if sizes != (count, count, count) or len(condition.outputs) != 1:
            raise node.error(f"its functions do not fit {count} variables; export the model again")
        self._constant = [self._stays(index) for index in range(count)]

    def _stays(self, index: int) -> bool:
        """Return whether the body passes a variable on unchanged."""
        nodes = {body_node.name: body_node for body_node in self._function.nodes}
        endpoint = self._function.outputs[index]
        for _ in range(len(nodes) + 1):
            if endpoint == NodeOutput(self._function.inputs[index]):
                return True
            node = nodes.get(endpoint.node)
            if node is None or node.op not in ("Identity", "Enter") or not node.inputs:
                return False
            endpoint = node.inputs[0]
        return False

    def _facts(self) -> list[TypedFact]:
        facts: list[TypedFact] = []
        for outlet, stays in zip(self._first, self._constant):
            fact = self._node.graph.fact(outlet)
            facts.append(fact if stays else TypedFact(fact.dtype, fact.shape))
        return facts

    @cached_property
    def _body(self) -> TypedNetwork:
        node = self._node
        return node.functions.to_typed(
            node.function("body"), self._facts(), node.scope, f"{node.wire_name}.body"
        )

    @cached_property
    def _condition(self) -> TypedNetwork:
        node = self._node
        return node.functions.to_typed(
            node.function("cond"), self._facts(), node.scope, f"{node.wire_name}.condition"
        )

    def _sources(self, model: TypedNetwork, names: Sequence[str]) -> dict[OutletId, int]:
        """Return the inputs of a model -> the number of the variable."""
        indices = {name: index for index, name in enumerate(names)}
        return {outlet: indices[model.graph.label(outlet)] for outlet in model.graph.inputs}

    def wire(self) -> list[OutletId]:
        """Add the loop; return the outlets of the variables after it."""
        node = self._node
        before = len(node.graph.nodes)
        try:
            return self._unroll_or_scan()
        except NotUnrolledError:
            retire_from(node.graph, before)
            return self._loop_at_run_time()

    @cached_property
    def _counters(self) -> dict[int, Counter]:
        body = self._body
        values = {index: self._node.graph.fact(outlet).value for index, outlet in enumerate(self._first)}
        return counters(body, self._sources(body, self._function.inputs), values)

    def _iterations(self) -> TDim:
        """Return how often the loop runs its body.

        Raises NotUnrolledError: the condition is not that counters are below limits
        """
        condition = self._condition
        names = self._node.functions.find(self._node.function("cond")).inputs
        return iteration_count(condition, self._sources(condition, names), self._counters)

    def _unroll_or_scan(self) -> list[OutletId]:
        """Return the loop unrolled or as a scan. Raises NotUnrolledError: it can be neither."""
        iterations = self._iterations()
        parts = self._parts(iterations)
        if iterations.is_const:
            count, size = int(iterations), len(self._body.graph.nodes)
            if count == 0:
                return list(self._first)
            if count <= MAX_ITERATIONS and count * size <= MAX_NODES:
                return self._unroll(count, parts)
        return self._scan(iterations, parts)

    def _parts(self, iterations: TDim) -> LoopParts:
        """Return the role of each variable in the loop.

        Raises NotUnrolledError: a list is not written in the order of the iterations
        """
        body = self._body
        sources = self._sources(body, self._function.inputs)
        own_sources = {variable: source for source, variable in sources.items()}
        elements: dict[int, OutletId] = {}
        heads: dict[int, Sequence[OutletId]] = {}
        last: dict[int, OutletId] = {}
        states: list[int] = []
        for variable, outlet in enumerate(body.graph.outputs):
            if self._constant[variable] or outlet == own_sources.get(variable) or variable in self._counters:
                continue
            producer = body.graph.node(outlet)
            if not isinstance(producer.op, ListWrite):
                states.append(variable)
                continue
            if self._writes_one(variable, producer.inputs, own_sources):
                last[variable] = producer.inputs[2]
                continue
            index = self._counters.get(sources.get(uncast(body, producer.inputs[1]), -1))
            if producer.inputs[0] != own_sources.get(variable) or index is None or index.step != 1:
                raise NotUnrolledError
            heads[variable] = self._head(self._first[variable], index.start, iterations)
            elements[variable] = producer.inputs[2]
        return LoopParts(own_sources, elements, heads, last, states, self._elements_read(sources))

    def _head(self, outlet: OutletId, start: TDim, iterations: TDim) -> list[OutletId]:
        """Return the elements of a list before the loop, which writes all later ones.

        Raises NotUnrolledError: they are not all known, or the list has another size
        """
        graph = self._node.graph
        values: dict[int, OutletId] = {}
        producer = graph.node(outlet)
        while isinstance(producer.op, ListWrite):
            row = known_value(graph, producer.inputs[1])
            if row is None or row.dtype == object:
                raise NotUnrolledError
            values.setdefault(int(row.reshape(())), producer.inputs[2])
            producer = graph.node(producer.inputs[0])
        if (
            not isinstance(producer.op, ReservedList)
            or start != len(values)
            or sorted(values) != list(range(len(values)))
        ):
            raise NotUnrolledError
        count, total = producer.op.count, iterations + len(values)
        if count != 0 and count != total and not count.prove_eq(total).yes:
            raise NotUnrolledError
        return [values[row] for row in range(len(values))]

    def _writes_one(
        self, variable: int, inputs: Sequence[OutletId], own_sources: Mapping[int, OutletId]
    ) -> bool:
        """Return whether each iteration writes the one element that a list has, so that the last one stays."""
        index = known_value(self._body.graph, inputs[1])
        first = self._node.graph.node(self._first[variable]).op
        return (
            index is not None
            and not index.any()
            and inputs[0] == own_sources.get(variable)
            and isinstance(first, ReservedList)
            and first.count == 1
            and all(dim.is_const for dim in self._body.graph.fact(inputs[2]).shape)
        )

    def _elements_read(self, sources: Mapping[OutletId, int]) -> dict[OutletId, tuple[OutletId, TDim]]:
        """Return the elements of constants of the loop that an iteration selects by a counter, and their start."""
        body = self._body
        values: dict[OutletId, tuple[OutletId, TDim]] = {}
        outside = {source: self._first[index] for source, index in sources.items() if self._constant[index]}
        for reader in body.graph.nodes:
            if not isinstance(reader.op, ListItem):
                continue
            index = self._counters.get(sources.get(uncast(body, reader.inputs[1]), -1))
            if (
                index is None
                or index.step != 1
                or not needed_inputs(body, [reader.inputs[0]], {}) <= outside.keys()
            ):
                continue
            (whole,) = graft(body, [reader.inputs[0]], self._node.graph, outside)
            values[OutletId(reader.id)] = (whole, index.start)
        return values

    def _targets(self, parts: LoopParts) -> list[OutletId]:
        states = (self._body.graph.outputs[index] for index in parts.states)
        return [*states, *parts.last.values(), *parts.written.values()]

    def _unroll(self, iterations: int, parts: LoopParts) -> list[OutletId]:
        """Wire every iteration after the one before it."""
        node, graph = self._node, self._node.graph
        current = {index: self._first[index] for index in parts.states}
        rows = {index: self._head_rows(index, parts) for index in parts.written}
        last: dict[int, OutletId] = {}
        current_spending().take_nodes(iterations * len(self._body.graph.nodes), node.wire_name)
        for iteration in range(iterations):
            present = {source: self._first[index] for index, source in parts.sources.items()}
            present |= {
                parts.sources[index]: outlet for index, outlet in current.items() if index in parts.sources
            }
            for index, counter in self._counters.items():
                if index in parts.sources:
                    present[parts.sources[index]] = self._counter_value(
                        index, counter, TDim.of(iteration), f"iteration{iteration}"
                    )
            for outlet, (whole, start) in parts.read.items():
                present[outlet] = self._element(whole, start + iteration, f"element{iteration}_{outlet.node}")
            outlets = graft(self._body, self._targets(parts), graph, present)
            stop = len(parts.states) + len(parts.last)
            states = outlets[: len(parts.states)]
            ends = outlets[len(parts.states) : stop]
            elements = outlets[stop:]
            last = dict(zip(parts.last, ends))
            for index, outlet in zip(parts.states, states):
                current[index] = self._like_first(index, outlet, f"state{index}_{iteration}")
            for index, outlet in zip(parts.written, elements):
                rows[index].append(node.wire(AddAxis(0), [outlet], f"row{index}_{iteration}"))
        elements_of = {
            index: wires[0] if len(wires) == 1 else node.wire(Concat(0), wires, f"rows{index}")
            for index, wires in rows.items()
        }
        return self._results(current | elements_of | self._as_lists(last), TDim.of(iterations))

    def _head_rows(self, index: int, parts: LoopParts) -> list[OutletId]:
        """Return the elements of a list that were written before the loop, each with an axis to be joined along."""
        heads = enumerate(parts.heads[index])
        return [self._node.wire(AddAxis(0), [outlet], f"head{index}_{row}") for row, outlet in heads]

    def _stop_head(self, index: int, parts: LoopParts, element_rows: OutletId) -> OutletId:
        rows = self._head_rows(index, parts)
        return self._node.wire(Concat(0), [*rows, element_rows], f"rows{index}") if rows else element_rows

    def _as_lists(self, last: Mapping[int, OutletId]) -> dict[int, OutletId]:
        """Return lists of one element, by their variables."""
        return {
            index: self._node.wire(AddAxis(0), [outlet], f"last{index}") for index, outlet in last.items()
        }

    def _counter_value(self, index: int, counter: Counter, iteration: TDim, name: str) -> OutletId:
        """Return a counter's value after some iterations."""
        value = counter.start + iteration * counter.step
        if not value.is_const:
            return self._node.dim_constant(value, f"counter{index}_{name}")
        dtype = self._node.graph.fact(self._first[index]).dtype
        return self._node.constant(np.array(int(value), dtype), f"counter{index}_{name}")

    def _element(self, whole: OutletId, index: TDim, name: str) -> OutletId:
        cut = self._node.wire(Slice(0, index, index + 1), [whole], f"{name}_cut")
        return self._node.wire(RemoveAxis(0), [cut], name)

    def _like_first(self, index: int, outlet: OutletId, name: str) -> OutletId:
        """Return a state in the type that it began with."""
        dtype = self._node.graph.fact(self._first[index]).dtype
        fact = self._node.graph.fact(outlet)
        if fact.dtype == dtype or not np.issubdtype(fact.dtype, np.integer):
            return outlet
        return self._node.wire(Cast(dtype), [outlet], name)

    def _results(self, values: Mapping[int, OutletId], iterations: TDim) -> list[OutletId]:
        results: list[OutletId] = []
        for index, first in enumerate(self._first):
            counter = self._counters.get(index)
            if index in values:
                results.append(values[index])
            elif counter is not None and not self._constant[index]:
                results.append(self._counter_value(index, counter, iterations, "last"))
            else:
                results.append(first)
        return results

    def _scan(self, iterations: TDim, parts: LoopParts) -> list[OutletId]:
        """Return a scan over the elements that the iterations take."""
        node, body, scanned = self._node, self._body, ScanBody()
        present = self._add_states(scanned, parts)
        for outlet, (whole, start) in parts.read.items():
            frames = self._run_through(whole, start, iterations)
            name, fact = f"{body.graph.label(outlet)}.frame", body.graph.fact(outlet)
            present[outlet] = scanned.add_frames(name, fact, frames)
        targets = self._targets(parts)
        needed = needed_inputs(body, targets, present)
        for index, source in parts.sources.items():
            if source in needed and source not in present:
                present[source] = self._add_input(scanned, index, iterations)
        if not scanned.has_frames:
            numbers = node.wire(Range(0, 1, iterations, np.dtype(np.int64)), [], "iterations")
            scanned.add_frames("iteration", TypedFact(np.dtype(np.int64), ()), numbers)
        graph = scanned.graph
        results = self._iteration_results(graft(body, targets, graph, present), graph, parts)
        count = len(parts.states) + len(parts.last)
        outlets = scanned.wire(node, node.wire_name, results[:count], results[count:], origins=body.origins)
        stacks, ends = outlets[: len(parts.written)], outlets[len(parts.written) :]
        values = {index: self._stop_head(index, parts, stack) for index, stack in zip(parts.written, stacks)}
        values |= dict(zip(parts.states, ends))
        values |= self._as_lists(dict(zip(parts.last, ends[len(parts.states) :])))
        return self._results(values, iterations)

    def _add_states(self, scanned: ScanBody, parts: LoopParts) -> dict[OutletId, OutletId]:
        """Add the states, then the last elements of lists; each iteration writes those, so they begin as zeros.

        Returns wires of the loop's body -> wires of the scan's.
        """
        node, label = self._node, self._function.inputs
        present: dict[OutletId, OutletId] = {}
        for index in parts.states:
            first = self._first[index]
            present[parts.sources[index]] = scanned.add_state(label[index], node.graph.fact(first), first)
        for index, outlet in parts.last.items():
            fact = self._body.graph.fact(outlet)
            zeros = node.constant(np.zeros(fact.sizes, fact.dtype), f"first{index}")
            scanned.add_state(label[index], fact, zeros)
        return present

    def _add_input(self, scanned: ScanBody, index: int, iterations: TDim) -> OutletId:
        """Add another input of an iteration: a value that stays, or a counter, whose values are frames."""
        name, first, counter = self._function.inputs[index], self._first[index], self._counters.get(index)
        fact = self._node.graph.fact(first)
        if counter is None or self._constant[index]:
            return scanned.add_capture(name, fact, first)
        return scanned.add_frames(name, fact, self._count(index, counter, iterations))

    def _iteration_results(
        self, outlets: Sequence[OutletId], graph: TypedGraph, parts: LoopParts
    ) -> list[OutletId]:
        """Return the results of an iteration, states in the types that they began with, each a separate wire."""
        results: list[OutletId] = []
        for index, outlet in enumerate(outlets):
            if index < len(parts.states):
                dtype = self._node.graph.fact(self._first[parts.states[index]]).dtype
                if graph.fact(outlet).dtype != dtype and np.issubdtype(dtype, np.integer):
                    outlet = wire(graph, f"state{index}", Cast(dtype), [outlet])[0]
            results.append(outlet)
        return results

    def _run_through(self, outlet: OutletId, start: TDim, iterations: TDim) -> OutletId:
        size = self._node.graph.fact(outlet).shape[0]
        if start == 0 and (size == iterations or size.prove_eq(iterations).yes):
            return outlet
        return self._node.wire(Slice(0, start, start + iterations), [outlet], f"frames{outlet.node}")

    def _count(self, index: int, counter: Counter, iterations: TDim) -> OutletId:
        if not counter.start.is_const:
            raise NotUnrolledError
        dtype = self._node.graph.fact(self._first[index]).dtype
        return self._node.wire(
            Range(int(counter.start), counter.step, iterations, dtype), [], f"counter{index}"
        )

    def _loop_at_run_time(self) -> list[OutletId]:
        """Return an op that evaluates the condition before each iteration."""
        node, body, condition = self._node, self._body, self._condition
        outer = self._sources(body, self._function.inputs)
        tested = self._sources(condition, node.functions.find(node.function("cond")).inputs)
        indices = sorted({*outer.values(), *tested.values()})
        states = [index for index in indices if not self._constant[index]]
        graph = TypedGraph()
        label = self._function.inputs
        inner = {
            index: add_source(graph, label[index], node.graph.fact(self._first[index])) for index in indices
        }
        present = {source: inner[index] for source, index in outer.items()}
        results = graft(body, [body.graph.outputs[index] for index in states], graph, present)
        next_states = dict(zip(states, results))
        after = {source: next_states.get(index, inner[index]) for source, index in tested.items()}
        (again,) = graft(condition, [condition.graph.outputs[0]], graph, after, "next/")
        graph.inputs = sources(graph)
        graph.set_outputs([again, *results], [f"result{result}" for result in range(1 + len(results))])
        before = {source: self._first[index] for source, index in tested.items()}
        (first_condition,) = graft(condition, [condition.graph.outputs[0]], node.graph, before)
        model = TypedNetwork(graph, node.scope, f"{node.wire_name}.body", {}, body.origins)
        open_ = [index for index in indices if self._constant[index]]
        names = ("iteration", "condition", *(graph.label(inner[index]) for index in states))
        op = Loop(model, names, tuple(graph.label(inner[index]) for index in open_), None)
        limit = node.constant(np.array(ENDLESS), "endless")
        first_condition = node.as_scalar(first_condition, "condition")
        operands = [limit, first_condition, *(self._first[index] for index in (*states, *open_))]
        outlets = wire(node.graph, node.wire_name, op, operands)
        values = dict(zip(states, outlets))
        return [values.get(index, first) for index, first in enumerate(self._first)]
