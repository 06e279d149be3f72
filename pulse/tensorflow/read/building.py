"""Nodes of a flat graph as a model: variables become inputs and outputs, effects are in order."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np

from pulse.dim import SymbolScope, TDim
from pulse.errors import LoadError
from pulse.facts import Array, TypedFact
from pulse.graph import OutletId
from pulse.infer.fact import InferenceFact
from pulse.infer.network import Constant, FileNetwork, InferenceGraph, Input, add_model_constant
from pulse.support.budget import current_spending
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.tensorflow.function_library import FunctionLibrary
from pulse.tensorflow.graph_node import GraphNode, LibraryFunction, NodeOutput, declared_type, read_tensor
from pulse.tensorflow.read.assignments import ASSIGNMENTS
from pulse.tensorflow.read.branch_effects import assigned_places
from pulse.tensorflow.read.branches import branches_to_selects
from pulse.tensorflow.read.dilation import merge_dilation
from pulse.tensorflow.read.effects import REFERENCES, VARIABLES, Variables, refuse_hidden, run_order
from pulse.tensorflow.read.flat import FlatGraph
from pulse.tensorflow.read.inlining import inline
from pulse.tensorflow.read.loops import loops_to_while
from pulse.tensorflow.read.op import TensorflowOp
from pulse.tensorflow.tensors import FunctionName
from pulse.typed import TypedNetwork, Variable

WITHOUT_RESULT = ("NoOp", "Assert", "Print", "PrintV2", "CheckNumerics", "StringFormat")
"""Operators without a result that a model needs."""
INITIALISED_QUERIES = ("VarIsInitializedOp", "IsVariableInitialized")
"""Operators that test whether a variable has a value."""
NEXT_SUFFIX = ".next"
"""The suffix of a variable's name for the output that is its next value."""


@record(eq=False)
class Request:
    """One run of a graph: its feeds, fetches and targets.

    fetches         tensors to return, by the names of the outputs
    targets         nodes to run
    feeds           tensors that are fed, and their known facts
    values          the values of variables
    frozen          variables that no run assigns: they are constants of the model
    held_variables  the known facts of variables that a caller owns
    """

    fetches: Mapping[str, NodeOutput]
    targets: tuple[str, ...] = ()
    feeds: Mapping[NodeOutput, InferenceFact] = field(default_factory=dict[NodeOutput, InferenceFact])
    values: Mapping[str, Array] = field(default_factory=dict[str, Array])
    frozen: bool = True
    held_variables: Mapping[str, InferenceFact] = field(default_factory=dict[str, InferenceFact])


def prepare_graph(
    nodes: Sequence[GraphNode],
    library: FunctionLibrary,
    title: str,
    names: Sequence[str],
    fed: Collection[NodeOutput] = (),
) -> FlatGraph:
    """Return the part of the graph that some nodes need: functions inlined; a loop, branch or dilation is one node.

    Raises LoadError: a node is missing, or a function, loop or branch is damaged or not supported
    """
    graph = FlatGraph(nodes, title)
    graph = FlatGraph(inline(graph.find_needed(names, fed).values(), library), title)
    flat = loops_to_while(graph, library)
    flat = FlatGraph(flat.find_needed(names, fed).values(), title)
    refuse_hidden(flat, library)
    return merge_dilation(branches_to_selects(flat), names, fed)


def build_model(
    graph: FlatGraph,
    library: FunctionLibrary,
    request: Request,
    scope: SymbolScope,
    labels: Mapping[NodeOutput, str] | None = None,
) -> FileNetwork:
    """Return the model of one run: its inputs are the feeds and the variables, its outputs the fetches and next values.

    labels   names of feeds, if not their tensors' names
    Raises   LoadError: a node cannot be read, or the order of assignments is not known
    """
    names = [
        *(fetch.node for fetch in request.fetches.values() if fetch not in request.feeds),
        *request.targets,
    ]
    return _Building(graph, library, request, scope, names).build(labels or {})


class _Building:
    """A model under construction from the nodes of one run."""

    def __init__(
        self,
        graph: FlatGraph,
        library: FunctionLibrary,
        request: Request,
        scope: SymbolScope,
        names: Sequence[str],
    ) -> None:
        self._library, self._request, self._scope = library, request, scope
        feeds = request.feeds
        whole = FlatGraph(graph.find_needed(names, feeds).values(), graph.title)
        self._variables = Variables(whole, library)
        effects = [node.name for node in whole if self._variables.changed_variables(node)]
        targets = [fetch.node for fetch in request.fetches.values() if fetch not in feeds]
        self._needed_nodes = whole.find_needed([*targets, *effects], feeds, controls=False)
        self._order = run_order(whole.nodes, self._variables, graph.title)
        self._order = [node for node in self._order if node.name in self._needed_nodes]
        self._graph = whole
        self._model = InferenceGraph()
        self._outlets: dict[NodeOutput, OutletId] = {}
        self._current: dict[str, OutletId] = {}
        self._assigned: dict[str, None] = {}
        self._variables_read: set[str] = set()
        self._references: dict[NodeOutput, OutletId] = {}
        tensors = [tensor for node in self._order for tensor in node.inputs]
        self._counts = _output_counts([*tensors, *request.fetches.values()])

    def build(self, labels: Mapping[NodeOutput, str]) -> FileNetwork:
        """Add the inputs, then every node in the order of the run, and return the model."""
        request = self._request
        for tensor, fact in request.feeds.items():
            self._outlets[tensor] = self._input(labels.get(tensor, str(tensor)), fact)
        for node in self._order:
            self._assigned.update(dict.fromkeys(self._variables.changed_variables(node)))
        before = {
            tensor: self._value(tensor.node)
            for tensor in request.fetches.values()
            if tensor not in self._outlets and self._graph.nodes[tensor.node].op_type in REFERENCES
        }
        for node in self._order:
            self._add_node(node)
        fetch_outlets = {
            name: before[tensor] if tensor in before else self._outlet(tensor, "the request")
            for name, tensor in request.fetches.items()
        }
        names = [name for name in self._assigned if name in self._variables_read or not request.frozen]
        variables = tuple(Variable(name, f"{name}{NEXT_SUFFIX}", request.values.get(name)) for name in names)
        results = [*fetch_outlets.values(), *(self._current[name] for name in names)]
        self._model.set_outputs(results, [*fetch_outlets, *(variable.output for variable in variables)])
        return FileNetwork(self._model, self._scope, self._graph.title, variables=variables)

    def _input(self, name: str, fact: InferenceFact) -> OutletId:
        op = Constant(fact.value) if fact.value is not None and fact.to_typed() is not None else Input(fact)
        (outlet,) = self._model.add(name, op, (), [fact])
        if isinstance(op, Input):
            self._model.inputs.append(outlet)
        return outlet

    def _value(self, variable: str) -> OutletId:
        """Return the value of a variable at this moment of the run."""
        if variable not in self._current:
            node, value = self._graph.nodes[variable], self._request.values.get(variable)
            if value is not None and self._request.frozen and variable not in self._assigned:
                self._current[variable] = self._add_constant(variable, value)
            else:
                self._variables_read.add(variable)
                state = self._request.held_variables.get(variable) or variable_fact(node)
                fact = state if value is None else InferenceFact.like(value)
                self._current[variable] = self._input(variable, fact)
        return self._current[variable]

    def _add_constant(self, name: str, value: Array) -> OutletId:
        current_spending().stored += value.size
        return add_model_constant(self._model, name, value)

    def _outlet(self, tensor: NodeOutput, reader: str) -> OutletId:
        if tensor in self._outlets:
            return self._outlets[tensor]
        variable = self._variables.find_variable(tensor)
        if variable is not None:
            return self._references[tensor] if tensor in self._references else self._value(variable)
        node = self._graph.nodes.get(tensor.node)
        problem = (
            "nothing makes it"
            if node is None
            else f"{tensor.node} ({node.op_type}) has no output {tensor.slot}"
        )
        raise LoadError(f"{self._graph.title}: {reader} reads {str(tensor)!r}: {problem}; check the name")

    def _add_node(self, node: GraphNode) -> None:
        if node.op_type in VARIABLES or node.op_type in WITHOUT_RESULT or self._variables.is_handle(node):
            return
        if all(
            NodeOutput(node.name, slot) in self._outlets for slot in range(self._counts.get(node.name, 1))
        ):
            return
        changed = self._variables.changed_variables(node)
        if node.op_type in ASSIGNMENTS:
            self._assign(node, changed[0])
        elif changed:
            self._branch(node, changed)
        elif node.op_type == "Const":
            self._outlets[NodeOutput(node.name)] = self._add_constant(node.name, constant_value(node))
        elif node.op_type in INITIALISED_QUERIES:
            self._outlets[NodeOutput(node.name)] = self._add_constant(node.name, np.array(self._is_set(node)))
        elif node.op_type == "PlaceholderWithDefault" and node.inputs:
            self._outlets[NodeOutput(node.name)] = self._outlet(node.inputs[0], node.name)
        elif node.op_type == "Placeholder":
            raise node.error("it is not fed; feed it, or a tensor after it")
        else:
            self._operator(node, node.op_type, [self._outlet(tensor, node.name) for tensor in node.inputs])

    def _is_set(self, node: GraphNode) -> bool:
        """Return whether a variable holds something at this moment of the run."""
        variable = self._variables.find_variable(node.inputs[0]) if node.inputs else None
        mappings = (self._request.values, self._request.held_variables, self._current)
        return any(variable in mapping for mapping in mappings)

    def _branch(self, node: GraphNode, changed: Sequence[str]) -> None:
        """Add an If: its branches' results, then the values of the variables after it."""
        count = len(self._library.find(node.function("then_branch")).outputs)
        reads = [self._outlet(tensor, node.name) for tensor in node.inputs]
        outlets = self._model.add(
            node.name,
            TensorflowOp(
                node.op_type,
                node.name,
                node.attributes,
                (*_labels(node.name, count), *(f"{node.name}/{variable}" for variable in changed)),
                LibraryModels(self._library),
            ),
            reads,
            [InferenceFact()] * (count + len(changed)),
        )
        for slot, outlet in enumerate(outlets[:count]):
            self._outlets.setdefault(NodeOutput(node.name, slot), outlet)
        self._current.update(zip(changed, outlets[count:]))

    def _operator(
        self, node: GraphNode, op: str, reads: Sequence[OutletId], name: str = ""
    ) -> list[OutletId]:
        count = self._counts.get(node.name, 1) if not name else 1
        label = name or node.name
        outputs = _labels(label, count)
        calls = any(isinstance(value, FunctionName) for value in node.attributes.values())
        operation = TensorflowOp(
            op, node.name, node.attributes, outputs, LibraryModels(self._library) if calls else None
        )
        outlets = self._model.add(label, operation, reads, [InferenceFact() for _ in outputs])
        if not name:
            for slot, outlet in enumerate(outlets):
                self._outlets.setdefault(NodeOutput(node.name, slot), outlet)
        return outlets

    def _assign(self, node: GraphNode, variable: str) -> None:
        value, *others = (self._outlet(tensor, node.name) for tensor in node.inputs[1:])
        assignment = ASSIGNMENTS[node.op_type]
        if assignment:
            (value,) = self._operator(node, assignment, [self._value(variable), value, *others], node.name)
        self._current[variable] = value
        self._references[NodeOutput(node.name)] = value


def _output_counts(tensors: Iterable[NodeOutput]) -> dict[str, int]:
    """Return the number of outputs of each node that these tensors need."""
    counts: dict[str, int] = {}
    for tensor in tensors:
        counts[tensor.node] = max(counts.get(tensor.node, 1), tensor.slot + 1)
    return counts


def _labels(name: str, count: int) -> tuple[str, ...]:
    return tuple(name if slot == 0 else f"{name}:{slot}" for slot in range(count))


@record(eq=False)
class LibraryModels:
    """The functions of a library, as models: what an operator sees of them."""

    library: FunctionLibrary

    def find(self, name: FunctionName) -> LibraryFunction:
        """Return a function. Raises LoadError: the file does not have it."""
        return self.library.find(name)

    def assignments(self, name: FunctionName) -> dict[int, str]:
        """Return the arguments that a function assigns, and the outputs of its model that are their next values."""
        inputs = self.library.find(name).inputs
        return {index: f"{inputs[index]}{NEXT_SUFFIX}" for index in assigned_places(name, self.library)}

    def to_typed(
        self, name: FunctionName, facts: Sequence[TypedFact], scope: SymbolScope, title: str
    ) -> TypedNetwork:
        """Return a function as a model; arguments with known values are constants in it.

        For each argument that the function assigns, an output ``argument.next`` after the others is its next value.
        Raises LoadError: there is no such function, or a node of it cannot be read.
        """
        function, assigned = self.library.find(name), self.assignments(name)
        if len(facts) != len(function.inputs):
            raise LoadError(
                f"{title}: {count_of(len(facts), 'argument')} for {len(function.inputs)}; export the model again"
            )
        current_spending().take_nodes(len(function.nodes), title)
        states: dict[str, InferenceFact] = {}
        feeds: dict[NodeOutput, InferenceFact] = {}
        for index, (argument, fact) in enumerate(zip(function.inputs, facts)):
            if index in assigned:
                states[argument] = InferenceFact(fact.dtype, fact.shape)
            else:
                feeds[NodeOutput(argument)] = InferenceFact(fact.dtype, fact.shape, fact.value)
        arguments = [
            GraphNode(name, "VarHandleOp" if name in states else "Placeholder") for name in function.inputs
        ]
        names = [*dict.fromkeys([*(output.node for output in function.outputs), *function.effects])]
        graph = prepare_graph([*arguments, *function.nodes], self.library, title, names)
        fetches = {f"{index}": tensor for index, tensor in enumerate(function.outputs)}
        request = Request(
            fetches, function.effects if states else (), feeds, frozen=not states, held_variables=states
        )
        return build_model(graph, self.library, request, scope).analyse()


def constant_value(node: GraphNode) -> Array:
    """Return the tensor of a Const. Raises LoadError: the node has none."""
    value = read_tensor(node)
    if value is None:
        raise node.error("attribute value must be a tensor; export the model again")
    if value.dtype.kind == "c":
        value = np.stack([np.real(value), np.imag(value)], -1)
    return value


def variable_fact(node: GraphNode) -> InferenceFact:
    """Return type and shape that a variable declares."""
    type_, dims = declared_type(node)
    dtype = None if type_ is None else type_.known_type
    if dims is None:
        return InferenceFact(dtype)
    return InferenceFact(dtype, tuple(None if dim is None else TDim.of(dim) for dim in dims))
