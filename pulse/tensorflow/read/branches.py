"""Branches that were written as single nodes (Switch and Merge outside loops) as a choice between two values."""

from pulse.tensorflow.graph_node import GraphNode, NodeOutput
from pulse.tensorflow.read.flat import FlatGraph
from pulse.tensorflow.read.loops import MERGE, SWITCH


def branches_to_selects(graph: FlatGraph) -> FlatGraph:
    """Return the graph with both branches run, and a choice by the condition after them.

    Raises LoadError: no Switch decides between the inputs of a Merge
    """
    if not any(node.op_type in SWITCH for node in graph):
        return graph
    nodes: list[GraphNode] = []
    for node in graph:
        if node.op_type in SWITCH:
            nodes.append(GraphNode(node.name, "IdentityN", (node.inputs[0], node.inputs[0]), node.controls))
        elif node.op_type in MERGE and len(node.inputs) == 2:
            condition, yes, no = _choose(graph, node)
            nodes.append(GraphNode(node.name, "Select", (condition, yes, no), node.controls))
        else:
            nodes.append(node)
    return FlatGraph(nodes, graph.title)


def _choose(graph: FlatGraph, merge: GraphNode) -> tuple[NodeOutput, NodeOutput, NodeOutput]:
    """Return the condition of a Merge, and its results if that is true and if it is false.

    Raises LoadError: no Switch decides between its inputs
    """
    first, second = merge.inputs
    sides = _find_conditions(graph, first), _find_conditions(graph, second)
    for condition, slot in sides[0].items():
        if sides[1].get(condition, slot) != slot:
            return (condition, first, second) if slot == 1 else (condition, second, first)
    raise merge.error(
        "no Switch decides between its inputs; export the model again, with functional branches (If)"
    )


def _find_conditions(graph: FlatGraph, tensor: NodeOutput) -> dict[NodeOutput, int]:
    """Return condition -> the output of Switch that a tensor depends on."""
    sides: dict[NodeOutput, int] = {}
    stack, visited = [tensor], set[NodeOutput]()
    while stack:
        reached = stack.pop()
        node = graph.nodes.get(reached.node)
        if reached in visited or node is None:
            continue
        visited.add(reached)
        if node.op_type in SWITCH and len(node.inputs) == 2:
            sides.setdefault(graph.source_of(node.inputs[1]), reached.slot)
        stack += [*node.inputs, *(NodeOutput(name) for name in node.controls)]
    return sides
