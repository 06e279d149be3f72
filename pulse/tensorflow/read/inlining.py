"""Inlining of function calls."""

from collections.abc import Iterable

from pulse.support.budget import current_spending
from pulse.support.wording import count_of
from pulse.tensorflow.function_library import FunctionLibrary
from pulse.tensorflow.graph_node import GraphNode, LibraryFunction, NodeOutput
from pulse.tensorflow.tensors import FunctionName

CALLS = ("PartitionedCall", "StatefulPartitionedCall")
MAX_DEPTH = 64
"""The deepest nesting of function calls."""


def inline(nodes: Iterable[GraphNode], library: FunctionLibrary) -> list[GraphNode]:
    """Replace every call by the nodes of its function, their names after the call's.

    Raises LoadError: a function is missing or has other arguments, calls are too deep, or there are too many nodes
    """
    flat: list[GraphNode] = []
    for node in nodes:
        flat += _expand(node, library, 0)
    return flat


def called_function(node: GraphNode, library: FunctionLibrary) -> FunctionName | None:
    """Return the function that a node calls; None if it is an operator."""
    if node.op_type in CALLS:
        return node.function("f")
    return FunctionName(node.op_type, node.attributes) if node.op_type in library else None


def _expand(node: GraphNode, library: FunctionLibrary, depth: int) -> list[GraphNode]:
    name = called_function(node, library)
    if name is None:
        return [node]
    if depth == MAX_DEPTH:
        raise node.error(f"functions call each other more than {MAX_DEPTH} deep; export the model again")
    function = library.find(name)
    if len(function.inputs) != len(node.inputs):
        raise node.error(
            f"{count_of(len(node.inputs), 'argument')} for the {len(function.inputs)} of function {function.name}; "
            "export the model again"
        )
    current_spending().take_nodes(len(function.nodes) + 1, node.name)
    result = _result(node, function)
    return [
        *(inner for called in _body(node, function) for inner in _expand(called, library, depth + 1)),
        result,
    ]


def _body(node: GraphNode, function: LibraryFunction) -> list[GraphNode]:
    """Return the nodes of a function as nodes of the caller; each runs after all nodes that run before the call."""
    arguments = dict(zip(function.inputs, node.inputs))
    inside = {member.name for member in function.nodes}
    body: list[GraphNode] = []
    for inner in function.nodes:
        controls = (f"{node.name}/{name}" for name in inner.controls if name in inside)
        body.append(
            GraphNode(
                f"{node.name}/{inner.name}",
                inner.op_type,
                tuple(_move(tensor, node.name, arguments) for tensor in inner.inputs),
                (*controls, *node.controls),
                inner.stored,
                inner.added,
                inner.values,
            )
        )
    return body


def _move(tensor: NodeOutput, call: str, arguments: dict[str, NodeOutput]) -> NodeOutput:
    if tensor.node in arguments:
        return arguments[tensor.node]
    return NodeOutput(f"{call}/{tensor.node}", tensor.slot)


def _result(node: GraphNode, function: LibraryFunction) -> GraphNode:
    """Return a node of the call's name that returns the function's results, after all its effects."""
    arguments = dict(zip(function.inputs, node.inputs))
    outputs = tuple(_move(tensor, node.name, arguments) for tensor in function.outputs)
    effects = tuple(f"{node.name}/{name}" for name in function.effects)
    return GraphNode(node.name, "IdentityN", outputs, (*node.controls, *effects))
