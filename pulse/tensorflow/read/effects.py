"""Variables: who reads and assigns them, and in which order that happens in one run."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from pulse.errors import LoadError
from pulse.support.wording import count_of
from pulse.tensorflow.function_library import FunctionLibrary
from pulse.tensorflow.graph_node import GraphNode, NodeOutput
from pulse.tensorflow.read.assignments import ASSIGNMENTS, CHANGING_PREFIXES, HANDLE_FORWARDING
from pulse.tensorflow.read.branch_effects import BRANCHES, branch_places, hidden_assignment, refusal
from pulse.tensorflow.read.flat import FlatGraph, nodes_before, sort_topologically
from pulse.tensorflow.read.loops import MERGE, SWITCH

VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
REFERENCES = ("VariableV2", "Variable")
"""Variables whose output is a reference to the tensor: a reader takes the value of that moment."""
_PASSING_REFERENCE = tuple(
    name for name in ASSIGNMENTS if not name.startswith("Resource") and not name.endswith("VariableOp")
)
"""Assignments that pass on the reference."""
MAX_SEARCH_STEPS = 200_000_000
"""Maximum number of steps for finding the order of reads and assignments; beyond it, the file is refused."""


class Variables:
    """The variables of a graph."""

    def __init__(self, graph: FlatGraph, library: FunctionLibrary) -> None:
        self._graph, self._library = graph, library
        self._variable_of: dict[NodeOutput, str | None] = {}

    def find_variable(self, tensor: NodeOutput) -> str | None:
        """Return the variable that a tensor is the handle of, or a reference to; None if it is a value."""
        chain: list[NodeOutput] = []
        name: str | None = None
        while True:
            if tensor in self._variable_of:
                name = self._variable_of[tensor]
                break
            if tensor in chain:
                break
            chain.append(tensor)
            node = self._graph.nodes.get(tensor.node)
            if node is None:
                break
            if node.op_type in VARIABLES:
                name = node.name
                break
            slot = tensor.slot if node.op_type == "IdentityN" else 0
            if (
                node.op_type not in (*HANDLE_FORWARDING, *_PASSING_REFERENCE)
                or slot >= len(node.inputs)
                or tensor.slot > slot
            ):
                break
            tensor = node.inputs[slot]
        refers = name is None or self._graph.nodes[name].op_type not in REFERENCES or self._refers(chain)
        if not refers:  # only this tensor: a part of the chain may still refer to the variable
            self._variable_of[chain[0]] = None
            return None
        self._variable_of.update(dict.fromkeys(chain, name))
        return name

    def _refers(self, chain: Sequence[NodeOutput]) -> bool:
        """Return whether each node between a tensor and its reference variable passes on the reference itself."""
        between = [self._graph.nodes[tensor.node].op_type for tensor in chain[:-1]]
        return all(op in (*_PASSING_REFERENCE, "RefIdentity", "RefEnter", "IdentityN") for op in between)

    def is_handle(self, node: GraphNode) -> bool:
        """Return whether a node only passes on handles."""
        return (
            node.op_type in HANDLE_FORWARDING
            and bool(node.inputs)
            and all(self.find_variable(tensor) is not None for tensor in node.inputs)
            and (node.op_type != "Identity" or self._is_handle(node.inputs[0]))
        )

    def _is_handle(self, tensor: NodeOutput) -> bool:
        name = self.find_variable(tensor)
        return name is not None and self._graph.nodes[name].op_type not in REFERENCES

    def assigned_variable(self, node: GraphNode) -> str | None:
        """Return the variable that a node assigns; None if it assigns none. Raises LoadError: it is unknown."""
        if node.op_type not in ASSIGNMENTS:
            if (
                node.op_type.startswith(CHANGING_PREFIXES)
                and node.inputs
                and self.find_variable(node.inputs[0]) is not None
            ):
                raise node.error(
                    "it changes a variable in a way that is not supported; assign the whole value"
                )
            return None
        name = self.find_variable(node.inputs[0]) if len(node.inputs) >= 2 else None
        if name is None:
            raise node.error("the variable that it assigns is not in the graph; export the model again")
        return name

    def changed_variables(self, node: GraphNode) -> tuple[str, ...]:
        """Return the variables that a node or its branches assign. Raises LoadError: they are unknown."""
        variable = self.assigned_variable(node)
        if variable is not None:
            return (variable,)
        indices = branch_places(node, self._library)
        handles = [self.find_variable(tensor) for tensor in node.inputs[1:]] if indices else []
        names: list[str] = []
        for index in indices:
            name = handles[index] if index < len(handles) else None
            if name is None or handles.count(name) > 1:
                raise node.error(
                    f"the variable that a branch assigns, its argument {index}, is not in the graph or given twice; "
                    "export the model again"
                )
            names.append(name)
        return tuple(names)

    def read(self, node: GraphNode) -> set[str]:
        """Return the variables whose value a node takes."""
        if self.is_handle(node) or node.op_type in VARIABLES:
            return set()
        inputs = node.inputs
        if node.op_type in ASSIGNMENTS and not ASSIGNMENTS[node.op_type]:
            inputs = inputs[1:]
        return {name for tensor in inputs if (name := self.find_variable(tensor)) is not None}


def run_order(needed: Mapping[str, GraphNode], variables: Variables, title: str) -> list[GraphNode]:
    """Return the nodes of one run in an order that keeps data and control edges.

    A node that reads a variable precedes every assignment to it, unless an edge orders them otherwise; assignments
    without such edges keep the order of the file.

    Raises LoadError: there is a cycle, or there are too many reads and assignments
    """
    after = {name: needed.keys() & node.predecessors for name, node in needed.items()}
    assigning: dict[str, list[str]] = {}
    for node in needed.values():
        for variable in variables.changed_variables(node):
            assigning.setdefault(variable, []).append(node.name)
    pairs: list[tuple[str, str]] = []
    if assigning:
        for node in needed.values():
            pairs += [
                (node.name, other) for name in variables.read(node) for other in assigning.get(name, ())
            ]
    for names in assigning.values():
        pairs += list(pairwise(names))
    if len(pairs) * sum(map(len, after.values())) > MAX_SEARCH_STEPS:
        raise LoadError(
            f"{title}: {count_of(len(pairs), 'pair')} of reads and assignments in {len(needed)} nodes are too many"
        )
    for first, then in pairs:
        if first != then and not _reaches(after, first, then):
            after[then].add(first)
    return sort_topologically(dict(needed), after, title)


def _reaches(after: Mapping[str, set[str]], later: str, earlier: str) -> bool:
    """Return whether a node certainly runs after another."""
    visited = {later}
    stack = [later]
    while stack:
        name = stack.pop()
        if name == earlier:
            return True
        fresh = after[name] - visited
        visited |= fresh
        stack += fresh
    return False


def refuse_hidden(graph: FlatGraph, library: FunctionLibrary) -> None:
    """Raise LoadError if a loop or a Switch governs an assignment: it would be lost, or always be done."""
    for node in graph:
        branch_places(node, library)
        assignment = None if node.op_type in BRANCHES else hidden_assignment(node, library, set())
        if assignment is not None:
            raise refusal(assignment)
        if node.op_type in ASSIGNMENTS and _is_switched(graph, node):
            raise node.error(
                "a Switch decides whether it assigns a variable; export the model again with functional branches (If), "
                "or assign what the branches return"
            )


def _is_switched(graph: FlatGraph, node: GraphNode) -> bool:
    """Return whether a Switch decides if a node runs: one comes before it, with no Merge between them."""
    return any(before.op_type in SWITCH for before in nodes_before(graph.nodes, node, until=MERGE))
