"""The graph of nodes that are written by hand: the unfinished graph of a model.

An input that nothing feeds reads its own node, ``OpenInput``. Parameters are constants, each one node for all readers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pulse.build.schemas import max_inputs
from pulse.dim import SymbolScope
from pulse.errors import DimError, FactError, InputError
from pulse.facts import Array, TypedFact
from pulse.graph import InletId, OutletId, View
from pulse.infer.fact import InferenceFact
from pulse.infer.network import Constant, FileNetwork, InferenceGraph, Input, add_model_constant
from pulse.infer.op import InferenceOp
from pulse.onnx.read.op import OnnxOp
from pulse.substitution import Terms
from pulse.support.naming import free_name, require_name
from pulse.support.record import record


@record(eq=False)
class OpenInput(InferenceOp):
    """An input that no node feeds yet; it becomes an input of the model.

    shape           dims and a type, such as ``1,80,T,f32``; inferred from weights and outputs if empty
    is_connector    whether it is a user's connector
    preferred_name  the name of the input, if no other input of the model has it
    """

    shape: str = ""
    is_connector: bool = False
    preferred_name: str = "x"

    @property
    def name(self) -> str:
        return "Input"

    def detail(self) -> str:
        return self.shape


def is_operator(op: InferenceOp) -> bool:
    """Return whether the node computes something: it is neither an input nor a constant."""
    return not isinstance(op, OpenInput | Input | Constant)


def is_open(op: InferenceOp) -> bool:
    """Return whether it is an input of the model."""
    return isinstance(op, OpenInput | Input)


class Canvas:
    """A graph under construction.

    scope   scope of the symbols in the shapes of inputs that were read from a file
    """

    def __init__(self, graph: InferenceGraph | None = None, scope: SymbolScope | None = None) -> None:
        self.graph = InferenceGraph() if graph is None else graph
        self.scope = scope

    def add(self, name: str, op: InferenceOp, inputs: Sequence[OutletId] = (), outputs: int = 1) -> OutletId:
        """Append a node; return its first outlet."""
        return self.graph.add(name, op, inputs, [InferenceFact() for _ in range(outputs)])[0]

    def add_constant(self, name: str, value: Array) -> OutletId:
        """Append a constant."""
        return add_model_constant(self.graph, name, value)

    def op(self, outlet: OutletId) -> InferenceOp:
        """Return the operator that makes a wire."""
        return self.graph.node(outlet).op

    def label(self, node_id: int) -> str:
        """Return the name of a node in errors."""
        node = self.graph.nodes[node_id]
        return f"{node.name} ({node.op.name})"

    def source(self, node_id: int, index: int) -> OutletId | None:
        """Return the wire at an input of an operator; None if it is omitted. Raises InputError: no such input."""
        slot = self._slot(node_id, index)
        return None if slot is None else self.graph.nodes[node_id].inputs[slot]

    def input_count(self, node_id: int) -> int:
        """Return the number of inputs of an operator, omitted ones included."""
        node = self.graph.nodes[node_id]
        return len(node.op.slots) if isinstance(node.op, OnnxOp) else len(node.inputs)

    def open_input_indices(self, node_id: int) -> list[int]:
        """Return the indices of the data inputs of an operator that neither a node nor a user's wire feeds."""
        sources = {index: self.source(node_id, index) for index in range(self.input_count(node_id))}
        ops = {index: self.op(outlet) for index, outlet in sources.items() if outlet is not None}
        return [index for index, op in ops.items() if isinstance(op, OpenInput) and not op.is_connector]

    def share(self, node_id: int) -> int:
        """Append a node of the same operator, which reads the same constants; its other inputs are open."""
        node = self.graph.nodes[node_id]
        inputs = [
            outlet if isinstance(self.op(outlet), Constant) else self.add("x", OpenInput())
            for outlet in node.inputs
        ]
        return self.add(node.name, node.op, inputs, len(node.outputs)).node

    def _slot(self, node_id: int, index: int) -> int | None:
        op, count = self.graph.nodes[node_id].op, self.input_count(node_id)
        max_count = max(count, max_inputs(op.domain, op.op_type)) if isinstance(op, OnnxOp) else count
        if not 0 <= index < max_count:
            inputs = f"its inputs are 0 to {max_count - 1}" if max_count else "it has none"
            raise InputError(f"{self.label(node_id)}: it has no input {index}; {inputs}")
        if not isinstance(op, OnnxOp):
            return index
        return op.slots[index] if index < count else None

    def connect(self, outlet: OutletId, node_id: int, index: int) -> None:
        """Feed an input of an operator. Raises InputError: it is fed by another node already, or it closes a cycle."""
        slot = self._slot(node_id, index)
        node = self.graph.nodes[node_id]
        if slot is None:
            assert isinstance(node.op, OnnxOp)
            slot = len(node.inputs)
            old_slots = (*node.op.slots, *[None] * (index - len(node.op.slots)))
            slots = (*old_slots[:index], slot, *old_slots[index + 1 :])
            node.op = replace(node.op, slots=slots)
        elif is_operator(self.op(node.inputs[slot])):
            raise InputError(
                f"{self.label(node_id)}: its input {index} already reads {self.graph.label(node.inputs[slot])}; "
                "feed another input, or replace that node"
            )
        if node_id in self.graph.order([outlet]):
            raise InputError(
                f"{self.label(node_id)}: reading {self.graph.label(outlet)} would close a cycle; use RNN, LSTM, GRU or "
                "Scan for a state from frame to frame"
            )
        old = node.inputs[slot] if slot < len(node.inputs) else None
        self.graph.connect(outlet, InletId(node_id, slot))
        if old is not None:
            self.graph.retire(old.node)

    def open_inputs(self, nodes: Iterable[int]) -> list[OutletId]:
        """Return the wires from other nodes that these nodes read, each once, in their order; no constants."""
        inside = set(nodes)
        opens = dict[OutletId, None]()
        for node_id in sorted(inside):
            for outlet in self.graph.nodes[node_id].inputs:
                if outlet.node not in inside and not isinstance(self.op(outlet), Constant):
                    opens.setdefault(outlet)
        return list(opens)

    def input_names(self, outlets: Iterable[OutletId]) -> dict[str, OutletId]:
        """Return wires as inputs of a model, by name; names given by the user take precedence."""
        inputs: dict[str, OutletId] = {}
        ranked = sorted(outlets, key=lambda outlet: not self._is_given(outlet))
        for outlet in ranked:
            op = self.op(outlet)
            base = op.preferred_name if isinstance(op, OpenInput) else self.graph.label(outlet)
            inputs[free_name(base, inputs.__contains__)] = outlet
        return inputs

    def _is_given(self, outlet: OutletId) -> bool:
        op = self.op(outlet)
        return not isinstance(op, OpenInput) or op.is_connector

    def results(self, nodes: Iterable[int]) -> list[OutletId]:
        """Return the wires that outside nodes read, and all wires of nodes without readers inside."""
        inside = set(nodes)
        results: list[OutletId] = []
        for node_id in sorted(inside):
            wires = self.graph.nodes[node_id].wires
            readers = {wire: {inlet.node for inlet in self.graph.outlet(wire).successors} for wire in wires}
            is_last = not any(inside & slots for slots in readers.values())
            results += [wire for wire in wires if is_last or readers[wire] - inside]
        return results

    def network(
        self,
        nodes: Iterable[int],
        inputs: Sequence[OutletId],
        outputs: Sequence[OutletId],
        shapes: Mapping[str, str],
        views: Mapping[str, View],
        title: str,
    ) -> FileNetwork:
        """Return a part of the graph as a separate network; the wires that it reads are its inputs.

        shapes   shapes of inputs, by name; other inputs keep theirs
        views    views to keep, as far as their nodes are in the part
        Raises   InputError: no such input, or no such shape
        """
        scope, graph = SymbolScope(), InferenceGraph()
        terms = Terms(scope, {})
        if self.scope is not None:
            terms.assume(self.scope)
        inside, copies = set(nodes), dict[OutletId, OutletId]()
        names = {outlet: name for name, outlet in self.input_names(inputs).items()}
        by_name = {names[outlet]: outlet for outlet in inputs}
        for name in sorted(shapes):
            require_name("input", name, by_name, InputError, title)
        for name, outlet in by_name.items():
            fact = self._input_fact(name, outlet, shapes.get(name), terms)
            copies[outlet] = graph.add(name, Input(fact), (), [fact])[0]
            graph.inputs.append(copies[outlet])
        for node_id in self.graph.order(outputs):
            node = self.graph.nodes[node_id]
            if OutletId(node_id) in copies or not (node_id in inside or isinstance(node.op, Constant)):
                continue
            facts = [outlet.fact for outlet in node.outputs]
            op = _with_names(node.op, node.name)
            outlets = graph.add(node.name, op, [copies[outlet] for outlet in node.inputs], facts)
            copies.update(zip(node.wires, outlets))
        graph.set_outputs([copies[outlet] for outlet in outputs])
        new_nodes = {old.node: (new.node,) for old, new in copies.items() if old.node in inside}
        graph.views = {name: view.translate(new_nodes) for name, view in views.items()}
        return FileNetwork(graph, scope, title)

    def _input_fact(self, name: str, outlet: OutletId, text: str | None, terms: Terms) -> InferenceFact:
        op = self.op(outlet)
        if isinstance(op, Input) and text is None:
            dims = [None if dim is None else terms.dim(dim) for dim in op.fact.dims]
            return replace(op.fact, shape=None if op.fact.shape is None else tuple(dims))
        text = text or (op.shape if isinstance(op, OpenInput) else "")
        if not text:
            return InferenceFact()
        try:
            fact = TypedFact.of_input(text, terms.scope)
        except (FactError, DimError) as error:
            raise InputError(f"input {name}: the shape must be dims such as '1,80,T': {error}") from error
        return InferenceFact.of(fact)


def _with_names(op: InferenceOp, name: str) -> InferenceOp:
    """Return an operator whose outputs have their own names: the node's, and with a number from the second on."""
    if not isinstance(op, OnnxOp):
        return op
    return replace(op, outputs=tuple(f"{name}.{slot}" if slot else name for slot in range(len(op.outputs))))
