"""The arguments of branches that are assigned variables."""

from pulse.errors import LoadError
from pulse.tensorflow.function_library import FunctionLibrary
from pulse.tensorflow.graph_node import GraphNode, LibraryFunction, NodeOutput
from pulse.tensorflow.read.assignments import HANDLE_FORWARDING, changes_variable
from pulse.tensorflow.read.inlining import called_function
from pulse.tensorflow.tensors import FunctionName

BRANCHES = ("If",)
MAX_DEPTH = 64
"""Maximum depth of branches and calls inside each other; deeper ones are refused."""


def branch_places(node: GraphNode, library: FunctionLibrary, depth: int = 0) -> tuple[int, ...]:
    """Return the arguments of an If that a branch assigns, counted without the condition; empty for other nodes.

    Raises LoadError: a branch assigns a variable that is not its argument, or in a loop
    """
    if node.op_type not in BRANCHES:
        return ()
    if depth == MAX_DEPTH:
        raise node.error(f"branches are more than {MAX_DEPTH} deep; export the model again")
    names = (node.function("then_branch"), node.function("else_branch"))
    return tuple(sorted({index for name in names for index in assigned_places(name, library, depth + 1)}))


def assigned_places(name: FunctionName, library: FunctionLibrary, depth: int = 0) -> tuple[int, ...]:
    """Return the arguments that a function assigns, directly, in its branches or through functions it calls.

    Raises LoadError: calls are too deep, or it is not known what an assignment changes
    """
    function = library.find(name)
    nodes = {node.name: node for node in function.nodes}
    indices: set[int] = set()
    for node in function.nodes:
        inner = called_function(node, library)
        if changes_variable(node.op_type):
            tensors = node.inputs[:1]
        elif inner is not None:
            if depth == MAX_DEPTH:
                raise node.error(
                    f"functions call each other more than {MAX_DEPTH} deep; export the model again"
                )
            tensors = _given_tensors(node, assigned_places(inner, library, depth + 1), 0)
        elif node.op_type in BRANCHES:
            tensors = _given_tensors(node, branch_places(node, library, depth), 1)
        else:
            assignment = hidden_assignment(node, library, set())
            if assignment is not None:
                raise refusal(assignment)
            continue
        for tensor in tensors:
            index = _argument(tensor, function, nodes)
            if index is None:
                raise refusal(node)
            indices.add(index)
    return tuple(sorted(indices))


def _given_tensors(node: GraphNode, indices: tuple[int, ...], first: int) -> tuple[NodeOutput, ...]:
    return tuple(node.inputs[first + index] for index in indices if first + index < len(node.inputs))


def _argument(tensor: NodeOutput, function: LibraryFunction, nodes: dict[str, GraphNode]) -> int | None:
    """Return the argument whose handle a tensor is."""
    for _ in range(len(nodes) + 1):
        if tensor.node in function.inputs:
            return function.inputs.index(tensor.node)
        node = nodes.get(tensor.node)
        if node is None or node.op_type not in HANDLE_FORWARDING or tensor.slot >= len(node.inputs):
            return None
        tensor = node.inputs[tensor.slot]
    return None


def hidden_assignment(node: GraphNode, library: FunctionLibrary, visited: set[str]) -> GraphNode | None:
    """Return an assignment in the functions that a node runs; None if there is none."""
    for value in node.attributes.values():
        if not isinstance(value, FunctionName) or value.name in visited or value.name not in library:
            continue
        visited.add(value.name)
        for inner in library.find(value).nodes:
            if changes_variable(inner.op_type):
                return inner
            assignment = hidden_assignment(inner, library, visited)
            if assignment is not None:
                return assignment
    return None


def refusal(node: GraphNode) -> LoadError:
    """Return the error for an assignment in a loop, or of a variable that is not an argument of the branch."""
    return node.error(
        "a loop assigns a variable, or a branch one that is not among its arguments; keep the state in the loop's own "
        "variables, or assign what the branches return"
    )
