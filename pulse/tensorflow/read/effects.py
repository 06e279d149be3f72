"""Variables: who reads and assigns them, and in which order that happens in one run."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from pulse.errors import LoadError
from pulse.tensorflow.library import Library
from pulse.tensorflow.nodes import Endpoint, GraphNode
from pulse.tensorflow.read.flat import FlatGraph, ordered
from pulse.tensorflow.read.loops import MERGE, SWITCH
from pulse.tensorflow.tensors import FunctionName

VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
REFERENCES = ("VariableV2", "Variable")
"""Variables whose output is a reference to the tensor: a reader takes the value of that moment."""
ASSIGNMENTS: dict[str, str] = {
    "AssignVariableOp": "",
    "AssignAddVariableOp": "AddV2",
    "AssignSubVariableOp": "Sub",
    "Assign": "",
    "AssignAdd": "AddV2",
    "AssignSub": "Sub",
    "ResourceScatterUpdate": "ScatterUpdate",
    "ResourceScatterAdd": "ScatterAdd",
    "ResourceScatterNdUpdate": "TensorScatterUpdate",
    "ResourceScatterNdAdd": "TensorScatterAdd",
    "ResourceStridedSliceAssign": "TensorStridedSliceUpdate",
    "ScatterUpdate": "ScatterUpdate",
    "ScatterAdd": "ScatterAdd",
    "ScatterNdUpdate": "TensorScatterUpdate",
    "ScatterNdAdd": "TensorScatterAdd",
    "StridedSliceAssign": "TensorStridedSliceUpdate",
}
"""Operator -> what makes the new value of the old one and its other inputs; the second input where it is empty."""
_CHANGING = (
    *("ResourceScatter", "ResourceStridedSlice", "ResourceApply", "ResourceSparse", "ResourceCountUpTo"),
    *("Scatter", "StridedSliceAssign", "Apply", "SparseApply", "CountUpTo", "AssignVariable"),
)
"""How operators begin that change the variable that is their first input."""
_RETURNING = tuple(
    name for name in ASSIGNMENTS if not name.startswith("Resource") and not name.endswith("VariableOp")
)
"""Assignments that give the reference on."""
_PASSING = ("Identity", "IdentityN", "RefIdentity", "Enter", "RefEnter")
MOST_WORK = 200_000_000
"""Steps that finding the order of reads and assignments may take."""


class Variables:
    """The variables of a graph."""

    def __init__(self, graph: FlatGraph) -> None:
        self._graph = graph
        self._known: dict[Endpoint, str | None] = {}

    def of(self, endpoint: Endpoint) -> str | None:
        """The variable that a tensor is the handle of, or a reference to; None if it is a value."""
        chain: list[Endpoint] = []
        found: str | None = None
        while True:
            if endpoint in self._known:
                found = self._known[endpoint]
                break
            if endpoint in chain:
                break
            chain.append(endpoint)
            node = self._graph.nodes.get(endpoint.node)
            if node is None:
                break
            if node.op in VARIABLES:
                found = node.name
                break
            slot = endpoint.slot if node.op == "IdentityN" else 0
            if node.op not in (*_PASSING, *_RETURNING) or slot >= len(node.inputs) or endpoint.slot > slot:
                break
            endpoint = node.inputs[slot]
        if found is not None and self._graph.nodes[found].op in REFERENCES:
            found = found if self._refers(chain) else None
        self._known.update(dict.fromkeys(chain, found))
        return found

    def _refers(self, chain: Sequence[Endpoint]) -> bool:
        """Whether every node between a tensor and its reference variable gives the reference on, not the value."""
        between = [self._graph.nodes[endpoint.node].op for endpoint in chain[:-1]]
        return all(op in (*_RETURNING, "RefIdentity", "RefEnter", "IdentityN") for op in between)

    def is_handle(self, node: GraphNode) -> bool:
        """Whether a node only gives handles on."""
        return (
            node.op in _PASSING
            and bool(node.inputs)
            and all(self.of(each) is not None for each in node.inputs)
            and (node.op != "Identity" or self._handle(node.inputs[0]))
        )

    def _handle(self, endpoint: Endpoint) -> bool:
        name = self.of(endpoint)
        return name is not None and self._graph.nodes[name].op not in REFERENCES

    def assigned(self, node: GraphNode) -> str | None:
        """The variable that a node assigns. Raises LoadError: it is not known which."""
        if node.op not in ASSIGNMENTS:
            if node.op.startswith(_CHANGING) and node.inputs and self.of(node.inputs[0]) is not None:
                raise node.error("it changes a variable in a way that is not covered; assign the whole value")
            return None
        name = self.of(node.inputs[0]) if len(node.inputs) >= 2 else None
        if name is None:
            raise node.error("the variable that it assigns is not in the graph; export the model again")
        return name

    def read(self, node: GraphNode) -> set[str]:
        """The variables whose value a node takes."""
        if self.is_handle(node) or node.op in VARIABLES:
            return set()
        inputs = node.inputs
        if node.op in ASSIGNMENTS and not ASSIGNMENTS[node.op]:
            inputs = inputs[1:]
        return {name for each in inputs if (name := self.of(each)) is not None}


def run_order(needed: Mapping[str, GraphNode], variables: Variables, title: str) -> list[GraphNode]:
    """The nodes of one run in an order that keeps data and control edges.

    A node that reads a variable stands before every assignment to it, unless an edge says otherwise; assignments that
    no edge orders stand in the order of the file. Raises LoadError.
    """
    after = {
        name: {*(each.node for each in node.inputs), *node.controls} & needed.keys()
        for name, node in needed.items()
    }
    assigning: dict[str, list[str]] = {}
    for node in needed.values():
        variable = variables.assigned(node)
        if variable is not None:
            assigning.setdefault(variable, []).append(node.name)
    pairs: list[tuple[str, str]] = []
    for node in needed.values() if assigning else ():
        pairs += [(node.name, other) for name in variables.read(node) for other in assigning.get(name, ())]
    for names in assigning.values():
        pairs += list(pairwise(names))
    if len(pairs) * sum(map(len, after.values())) > MOST_WORK:
        raise LoadError(
            f"{title}: {len(pairs)} pairs of reads and assignments in {len(needed)} nodes are too many"
        )
    for first, then in pairs:
        if first != then and not _reaches(after, first, then):
            after[then].add(first)
    return ordered(dict(needed), after, title)


def _reaches(after: Mapping[str, set[str]], late: str, early: str) -> bool:
    """Whether a node surely runs behind another."""
    seen = {late}
    left = [late]
    while left:
        name = left.pop()
        if name == early:
            return True
        fresh = after[name] - seen
        seen |= fresh
        left += fresh
    return False


def refuse_hidden(graph: FlatGraph, library: Library) -> None:
    """Raise LoadError where a loop or branch assigns a variable: as one node it would lose that, or always do it."""
    for node in graph:
        found = _assigning(node, library, set())
        if found is not None:
            raise found.error(
                "a loop or branch assigns a variable; only assignments outside of them are covered: keep the state in "
                "the loop's own variables, or assign what the branches give"
            )
        if node.op in ASSIGNMENTS and _switched(graph, node):
            raise node.error(
                "a branch assigns a variable; only assignments outside of branches are covered: assign what they give"
            )


def _assigning(node: GraphNode, library: Library, seen: set[str]) -> GraphNode | None:
    """An assignment in the functions that a node runs."""
    for value in node.attributes.values():
        if not isinstance(value, FunctionName) or value.name in seen or value.name not in library:
            continue
        seen.add(value.name)
        for inner in library.find(value).nodes:
            if inner.op in ASSIGNMENTS or inner.op.startswith(("ResourceScatter", "ResourceApply")):
                return inner
            found = _assigning(inner, library, seen)
            if found is not None:
                return found
    return None


def _switched(graph: FlatGraph, node: GraphNode) -> bool:
    """Whether a node runs only where a Switch lets it: there is one before it, with no Merge between them."""
    left = [*(each.node for each in node.inputs), *node.controls]
    seen: set[str] = set()
    while left:
        name = left.pop()
        made = graph.nodes.get(name)
        if name in seen or made is None or made.op in MERGE:
            continue
        if made.op in SWITCH:
            return True
        seen.add(name)
        left += [*(each.node for each in made.inputs), *made.controls]
    return False
