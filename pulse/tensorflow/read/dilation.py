"""``SpaceToBatchND -> convolution -> BatchToSpaceND`` as one dilated convolution."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, cast

import numpy as np

from pulse.facts import Array
from pulse.tensorflow.graph_node import GraphNode, NodeOutput, read_tensor
from pulse.tensorflow.operators.pad import PAD_OP
from pulse.tensorflow.read.flat import FlatGraph

CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")
PASSED = ("BiasAdd", "Identity", "Squeeze", "ExpandDims")


def merge_dilation(graph: FlatGraph, fetched: Collection[str], fed: Collection[NodeOutput]) -> FlatGraph:
    """Return the graph with dilated convolutions, except at nodes that are fetched or fed."""
    needed = {*fetched, *(tensor.node for tensor in fed)}
    replacements: dict[str, GraphNode] = {}
    readers = Counter(tensor.node for node in graph for tensor in node.inputs)
    for node in graph:
        if node.op_type == "BatchToSpaceND" and len(node.inputs) == 3:
            replacements.update(_dilated_nodes(graph, node, readers, needed, fed))
    if replacements:
        return FlatGraph((replacements.get(node.name, node) for node in graph), graph.title)
    return graph


def _known_value(graph: FlatGraph, tensor: NodeOutput) -> Array | None:
    """Return the value of a constant."""
    node = graph.nodes.get(graph.source_of(tensor).node)
    return read_tensor(node) if node is not None and node.op_type == "Const" else None


def _dilated_nodes(
    graph: FlatGraph,
    end: GraphNode,
    readers: Mapping[str, int],
    needed: Collection[str],
    fed: Collection[NodeOutput],
) -> dict[str, GraphNode]:
    """Return the nodes that replace those of one pattern; empty if there is no pattern."""
    block = _known_value(graph, end.inputs[1])
    conv, chain = _walk_upwards(graph, end.inputs[0], CONVOLUTIONS)
    if block is None or conv is None or not _has_unit_window(conv):
        return {}
    start, before = _walk_upwards(graph, conv.inputs[0], ("SpaceToBatchND",))
    if start is None or len(start.inputs) != 3:
        return {}
    other = _known_value(graph, start.inputs[1])
    inner = [start, *before, conv, *chain]
    if other is None or not np.array_equal(other, block):
        return {}
    if any(readers[node.name] > 1 or node.name in needed for node in inner):
        return {}
    dilations = _dilations(graph, [int(size) for size in block.ravel().tolist()], before)
    if dilations is None:
        return {}
    attributes = {**conv.attributes, "dilations": dilations}
    crops = end.inputs[2]
    if conv.name in graph.find_needed([crops.node], fed, controls=False):
        return {}
    return {
        start.name: GraphNode(start.name, PAD_OP, (start.inputs[0], start.inputs[2], crops), start.controls),
        conv.name: GraphNode(conv.name, conv.op_type, conv.inputs, conv.controls, None, attributes),
        end.name: GraphNode(end.name, "Identity", end.inputs[:1], end.controls),
    }


def _walk_upwards(
    graph: FlatGraph, tensor: NodeOutput, ops: tuple[str, ...]
) -> tuple[GraphNode | None, list[GraphNode]]:
    """Return the first node of some operators before a tensor, and the nodes between."""
    between: list[GraphNode] = []
    while len(between) <= len(graph.nodes):
        node = graph.nodes.get(tensor.node)
        if node is None or tensor.slot:
            break
        if node.op_type in ops:
            return node, between
        if node.op_type not in PASSED or not node.inputs:
            break
        between.append(node)
        tensor = node.inputs[0]
    return None, []


def _has_unit_window(conv: GraphNode) -> bool:
    """Return whether a convolution has no padding, steps or dilation of its own."""
    for name in ("strides", "dilations"):
        values = conv.attributes.get(name, [1])
        if not isinstance(values, list) or any(value != 1 for value in cast("list[Any]", values)):
            return False
    settings = [conv.attributes.get("padding"), conv.attributes.get("data_format", "NHWC")]
    return all(isinstance(setting, str) for setting in settings) and settings == ["VALID", "NHWC"]


def _dilations(graph: FlatGraph, block: list[int], before: list[GraphNode]) -> list[int] | None:
    """Return the dilation of each axis of the convolution's input, NHWC."""
    axes = list(range(1, 1 + len(block)))
    rank = 4
    for node in before:
        if node.op_type == "ExpandDims" and len(node.inputs) == 2:
            value = _known_value(graph, node.inputs[1])
            if value is None or value.size != 1:
                return None
            new_axis = int(value.reshape(())) % rank
            if new_axis == 0:
                return None
            axes = [axis + (axis >= new_axis) for axis in axes]
        elif node.op_type != "Identity":
            return None
    if any(axis > 2 for axis in axes):
        return None
    dilations = [1, 1, 1, 1]
    for axis, size in zip(axes, block):
        dilations[axis] = size
    return dilations
