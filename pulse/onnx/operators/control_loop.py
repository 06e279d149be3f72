"""Loops: a number of iterations that is known before running is unrolled."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from pulse.dim import TDim
from pulse.errors import LoadError, PulseError
from pulse.facts import BOOL, I64, Array, TypedFact
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.infer.unrolling import ENDLESS, MAX_ITERATIONS, MAX_NODES, NotUnrolledError, inline, retire_from
from pulse.onnx.operators.control import SCALAR, body
from pulse.onnx.registry import onnx_op
from pulse.onnx.subgraph import BodyGraph
from pulse.onnx.write.graph import value_info
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.onnx.write.walk import write_body
from pulse.ops.concat import Concat
from pulse.ops.control import Loop
from pulse.ops.shape import AddAxis
from pulse.support.budget import current_spending
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.typed import TypedNetwork, known_value
from pulse.wiring import wire

REPEATING = ("Loop", "Scan", "If")


@onnx_op("Loop")
def loop(node: NodeContext) -> Sequence[OutletId]:
    """Unroll the loop if its number of iterations is known; else wire one op."""
    return _LoopTranslation(node, body(node, "body")).wire()


@record(eq=False)
class _LoopTranslation:
    """The translation of one Loop node."""

    node: NodeContext
    graph: BodyGraph

    def wire(self) -> list[OutletId]:
        node = self.node
        if len(self.graph.inputs) < 2 or len(self.graph.proto.output) < 1 + self.count:
            raise node.error(f"its body does not fit {count_of(self.count, 'state')}")
        limit, condition = self._limit(), self._condition()
        before = len(node.graph.nodes)
        try:
            self._require_small()
            return self._unroll(limit) if self._enters(limit, condition) else self._skip()
        except NotUnrolledError:
            retire_from(node.graph, before)
            return self._wire_op(limit, condition)

    def _require_small(self) -> None:
        """Raise NotUnrolledError if an iteration with inner loops has too many nodes by itself."""
        if not any(inner.op_type in REPEATING for inner in self.graph.proto.node):
            return
        before = current_spending().nodes
        try:
            any_iteration = self._model
        except PulseError:  # unrolled, the loop may load; if not, the error has the reason
            return
        if any_iteration.spending.nodes - before > MAX_NODES:
            raise NotUnrolledError

    @property
    def count(self) -> int:
        """The number of states."""
        return max(0, len(self.node.inputs) - 2)

    def _limit(self) -> OutletId:
        if not self.node.has(0):
            return self.node.constant(np.array(ENDLESS), "endless")
        return self.node.as_scalar(self.node.input(0), "trip_count")

    def _condition(self) -> OutletId:
        if not self.node.has(1):
            return self.node.constant(np.array(True), "condition")
        return self.node.as_scalar(self.node.input(1), "condition")

    def _states(self) -> list[OutletId]:
        return [self.node.input(slot) for slot in range(2, len(self.node.inputs))]

    def _number(self, outlet: OutletId) -> int | None:
        value = known_value(self.node.graph, outlet)
        return None if value is None else int(value.reshape(()))

    def _enters(self, limit: OutletId, condition: OutletId) -> bool:
        """Return whether there is a first iteration.

        Raises NotUnrolledError: that is not known, or there are too many iterations
        """
        trip_count, first = self._number(limit), self._number(condition)
        if first == 0 or (trip_count is not None and trip_count <= 0):
            return False
        if trip_count is None or first is None:
            raise NotUnrolledError
        if trip_count > MAX_ITERATIONS and self._never_stops(self._model):
            raise NotUnrolledError
        return True

    def _unroll(self, limit: OutletId) -> list[OutletId]:
        """Wire every iteration after the one before it.

        Raises NotUnrolledError: a condition is not known, or there are too many iterations or nodes
        """
        trip_count = self._number(limit)
        assert trip_count is not None
        states, gathered = self._states(), list[list[OutletId]]()
        spending = current_spending()
        before = spending.nodes
        for iteration in range(trip_count):
            if iteration == MAX_ITERATIONS or spending.nodes - before > MAX_NODES:
                raise NotUnrolledError
            results = self._iteration(iteration, states)
            condition = self._number(results[0])
            if condition is None:
                raise NotUnrolledError
            states = results[1 : 1 + self.count]
            gathered.append(results[1 + self.count :])
            if not condition:
                break
        scan_outputs = [self._stack(slot, list(frames)) for slot, frames in enumerate(zip(*gathered))]
        return self._name_outputs([*states, *scan_outputs])

    def _iteration(self, iteration: int, states: Sequence[OutletId]) -> list[OutletId]:
        node = self.node
        first = [
            node.constant(np.array(iteration), f"iteration{iteration}"),
            node.constant(np.array(True), f"condition{iteration}"),
        ]
        feeds = dict(zip(self.graph.inputs, [*first, *states])) | dict(node.captures)
        facts = {name: node.graph.fact(outlet) for name, outlet in feeds.items()}
        return inline(node.graph, self.graph.to_typed(facts, node.scope, f"{node.wire_name}.body"), feeds)

    def _stack(self, slot: int, values: Sequence[OutletId]) -> OutletId:
        node = self.node
        rows = [
            node.wire(AddAxis(0), [value], f"row{slot}_{iteration}") for iteration, value in enumerate(values)
        ]
        return rows[0] if len(rows) == 1 else node.wire(Concat(0), rows, f"rows{slot}")

    def _name_outputs(self, outlets: Sequence[OutletId]) -> list[OutletId]:
        pairs = zip(self.node.outputs, outlets)
        return [self.node.with_name(name).name_result(outlet) if name else outlet for name, outlet in pairs]

    def _skip(self) -> list[OutletId]:
        """Run no iteration: the states are unchanged, and the scan outputs are empty."""
        node, model = self.node, self._model
        facts = [model.graph.fact(outlet) for outlet in model.graph.outputs[1 + self.count :]]
        empty: list[OutletId] = []
        for slot, fact in enumerate(facts):
            if not all(dim.is_const for dim in fact.shape):
                raise node.error(
                    "a loop without iterations that gathers tensors of symbolic size is not supported"
                )
            value: Array = np.zeros((0, *fact.sizes), fact.dtype)
            empty.append(node.constant(value, f"rows{slot}"))
        return self._name_outputs([*self._states(), *empty])

    @cached_property
    def _model(self) -> TypedNetwork:
        """The body for any iteration."""
        node, states = self.node, self._states()
        body_inputs = [TypedFact(I64, SCALAR), TypedFact(BOOL, SCALAR)]
        body_inputs += [TypedFact(fact.dtype, fact.shape) for fact in map(node.graph.fact, states)]
        captured: Mapping[str, TypedFact] = {
            name: node.graph.fact(outlet) for name, outlet in node.captures.items()
        }
        facts = dict(zip(self.graph.inputs, body_inputs)) | captured
        return self.graph.to_typed(facts, node.scope, f"{node.wire_name}.body")

    def _wire_op(self, limit: OutletId, condition: OutletId) -> list[OutletId]:
        node, model = self.node, self._model
        open_names = tuple(
            name for name, outlet in node.captures.items() if node.graph.fact(outlet).value is None
        )
        iterations = self._iterations(limit, condition, model)
        if iterations is None and len(model.graph.outputs) > 1 + self.count:
            raise LoadError(
                f"{node.wire_name} (Loop): how often it runs depends on data, so the length of what it gathers is "
                "not known; export a loop over frames as Scan, or with a constant trip count"
            )
        op = Loop(model, tuple(self.graph.inputs), open_names, iterations)
        controls = [limit, condition] if iterations is None else []
        operands = [*controls, *self._states(), *(node.captures[name] for name in open_names)]
        return wire(node.graph, node.wire_name, op, operands)

    def _iterations(self, limit: OutletId, condition: OutletId, model: TypedNetwork) -> TDim | None:
        """Return the number of iterations, or None unless the body never stops."""
        value = self.node.graph.fact(limit).value
        if value is None or self._number(condition) != 1 or not self._never_stops(model):
            return None
        return TDim.of(value.reshape(()).item())

    def _never_stops(self, model: TypedNetwork) -> bool:
        """Return whether the body's condition is always true, or always its input."""
        condition = model.graph.outputs[0]
        last = known_value(model.graph, condition)
        return model.graph.label(condition) == self.graph.inputs[1] or (last is not None and bool(last))


@writes(Loop)
def write_loop(w: NodeWriter, op: Loop) -> list[str]:
    """Write a loop whose body takes the number of the iteration, the condition, and the states."""
    inner, graph = replace(w, graph=w.graph.body()), op.body.graph
    count = len(op.names)
    facts = [(I64, ()), (BOOL, ())]
    facts += [(fact.dtype, fact.sizes) for fact in w.input_facts[2:count]]
    loop_names = [w.graph.names.new(f"{w.name}.{name}") for name in op.names]
    inside = dict(zip(op.names, loop_names)) | dict(zip(op.captured, w.inputs[count:]))
    results = [
        value_info(
            inner.emit("Identity", [name], f"iteration{slot}"),
            graph.fact(outlet).dtype,
            graph.fact(outlet).sizes,
        )
        for slot, (name, outlet) in enumerate(zip(write_body(inner, graph, inside), graph.outputs))
    ]
    inputs = [value_info(name, dtype, sizes) for name, (dtype, sizes) in zip(loop_names, facts)]
    from onnx import helper

    body = helper.make_graph(inner.graph.nodes, f"{w.name}.body", inputs, results)
    return w.emit_all("Loop", w.inputs[:count], [""] * len(w.outputs), body=body)
