"""Loops. One that counts, and takes and makes one element of a list in each iteration, is a scan over frames."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from pulse.dim import TDim
from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.infer.counted_loop import CountedLoop, FramesRead, needed_inputs
from pulse.infer.counting import Counter, counters, index_counter, iteration_count
from pulse.infer.unrolling import ENDLESS, NotUnrolledError, graft, retire_from
from pulse.ops.concat import Concat
from pulse.ops.control import Loop
from pulse.ops.dims import simplest_max
from pulse.ops.shape import AddAxis
from pulse.support.record import record
from pulse.tensorflow.graph_node import LibraryFunction, NodeOutput
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.operators.control_lists import ListItem, ListWrite, ReservedList
from pulse.tensorflow.registry import tensorflow_op
from pulse.typed import TypedGraph, TypedNetwork, add_source, known_value, sources
from pulse.wiring import wire


@tensorflow_op("While", "StatelessWhile")
def loop(node: TensorflowNode) -> list[OutletId]:
    """Unroll a loop of few iterations; otherwise write a scan, or else an op that decides while running."""
    return _While(node).wire()


@record(eq=False)
class _CountedLists:
    """A loop that counts, and what it does not know of its lists.

    heads  lists -> the elements that they have before it
    last   lists of one element, which each iteration writes -> one more state each, which begins as zeros
    """

    loop: CountedLoop
    heads: Mapping[int, Sequence[OutletId]]
    last: Mapping[int, int]


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
        tensor = self._function.outputs[index]
        for _ in range(len(nodes) + 1):
            if tensor == NodeOutput(self._function.inputs[index]):
                return True
            node = nodes.get(tensor.node)
            if node is None or node.op_type not in ("Identity", "Enter") or not node.inputs:
                return False
            tensor = node.inputs[0]
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
        return counters(body, _sources(body, self._function.inputs), values)

    def _iterations(self) -> TDim:
        """Return how often the loop runs its body.

        Raises NotUnrolledError: the condition is not that counters are below limits
        """
        condition = self._condition
        names = self._node.functions.find(self._node.function("cond")).inputs
        return iteration_count(condition, _sources(condition, names), self._counters)

    def _unroll_or_scan(self) -> list[OutletId]:
        """Return the loop unrolled or as a scan. Raises NotUnrolledError: it can be neither."""
        iterations = self._iterations()
        if iterations == 0:
            return list(self._first)
        counted = self._counted_loop(iterations)
        outlets = counted.loop.wire()
        for variable, rows in counted.heads.items():
            head = [self._widen(outlet, f"head{variable}_{row}") for row, outlet in enumerate(rows)]
            if head:
                outlets[variable] = self._node.wire(Concat(0), [*head, outlets[variable]], f"rows{variable}")
        for variable, state in counted.last.items():
            outlets[variable] = self._widen(outlets[state], f"last{variable}")
        return outlets[: len(self._first)]

    def _widen(self, outlet: OutletId, name: str) -> OutletId:
        return self._node.wire(AddAxis(0), [outlet], name)

    def _counted_loop(self, iterations: TDim) -> "_CountedLists":
        """Return the role of each variable in the loop.

        Raises NotUnrolledError: a list is not written in the order of the iterations
        """
        node, body = self._node, self._body
        sources = _sources(body, self._function.inputs)
        own_sources = {variable: source for source, variable in sources.items()}
        lists: dict[int, OutletId] = {}
        states: dict[int, OutletId] = {}
        heads: dict[int, Sequence[OutletId]] = {}
        single: dict[int, OutletId] = {}
        for variable, outlet in enumerate(body.graph.outputs):
            if self._constant[variable] or outlet == own_sources.get(variable) or variable in self._counters:
                continue
            producer = body.graph.node(outlet)
            if not isinstance(producer.op, ListWrite):
                states[variable] = outlet
                continue
            if self._writes_one(variable, producer.inputs, own_sources):
                single[variable] = producer.inputs[2]
                continue
            index = index_counter(body, producer.inputs[1], sources, self._counters)
            if producer.inputs[0] != own_sources.get(variable) or index is None or index.step != 1:
                raise NotUnrolledError
            heads[variable] = self._head(self._first[variable], index.start, iterations)
            lists[variable] = producer.inputs[2]
        reads, first = self._elements_read(sources), list(self._first)
        last: dict[int, int] = {}
        for variable, outlet in single.items():
            fact = body.graph.fact(outlet)
            last[variable] = len(first)
            states[len(first)] = outlet
            first.append(node.constant(np.zeros(fact.sizes, fact.dtype), f"first{variable}"))
        loop = CountedLoop(
            node,
            body,
            iterations,
            first,
            counters=self._counters,
            sources=sources,
            states=states,
            lists=lists,
            reads=reads,
        )
        return _CountedLists(loop, heads, last)

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
        if count != 0 and count != total and not simplest_max(count, TDim.of(0)).prove_eq(total).yes:
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

    def _elements_read(self, sources: Mapping[OutletId, int]) -> dict[OutletId, FramesRead]:
        """Return the elements of constants of the loop that an iteration selects by a counter."""
        body = self._body
        reads: dict[OutletId, FramesRead] = {}
        outside = {source: self._first[index] for source, index in sources.items() if self._constant[index]}
        for reader in body.graph.nodes:
            if not isinstance(reader.op, ListItem):
                continue
            index = index_counter(body, reader.inputs[1], sources, self._counters)
            if (
                index is None
                or index.step < 1
                or (index.start.is_const and int(index.start) < 0)
                or not needed_inputs(body, [reader.inputs[0]], {}) <= outside.keys()
            ):
                continue
            (whole,) = graft(body, [reader.inputs[0]], self._node.graph, outside)
            reads[OutletId(reader.id)] = FramesRead(whole, 0, index.start, index.step)
        return reads

    def _loop_at_run_time(self) -> list[OutletId]:
        """Return an op that evaluates the condition before each iteration."""
        node, body, condition = self._node, self._body, self._condition
        for variable, outlet in enumerate(body.graph.outputs):
            first, write = node.graph.node(self._first[variable]).op, body.graph.node(outlet)
            if isinstance(first, ReservedList) and not first.element and isinstance(write.op, ListWrite):
                node.require(
                    not body.graph.fact(write.inputs[2]).rank,
                    "it writes a list otherwise than one element after the other, one in each iteration; write "
                    "element t in iteration t, as in array.write(t, y)",
                )
        outer = _sources(body, self._function.inputs)
        tested = _sources(condition, node.functions.find(node.function("cond")).inputs)
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


def _sources(model: TypedNetwork, names: Sequence[str]) -> dict[OutletId, int]:
    """Return the inputs of a model -> the number of the variable."""
    indices = {name: index for index, name in enumerate(names)}
    return {outlet: indices[model.graph.label(outlet)] for outlet in model.graph.inputs}
