"""The graph of a file as a picture, with parts that models do not have: variables, assignments, control edges."""

from typing import cast

from pulse.errors import PulseError
from pulse.infer.network import FileNetwork
from pulse.tensorflow.graph_node import GraphNode, NodeOutput
from pulse.tensorflow.read.effects import VARIABLES
from pulse.tensorflow.read.flat import FlatGraph
from pulse.tensorflow.tensors import FunctionName, TensorType
from pulse.text.picture import Picture

_MAX_ATTRIBUTE_LENGTH = 60
"""Maximum number of characters of an attribute; a longer one is cut."""


def picture(model: FileNetwork, graph: FlatGraph) -> str:
    """Return the nodes in groups by name scope; data edges have the tensor's known facts, control edges are dashed."""
    drawing = Picture(model.title)
    keys = {name: f"n{index}" for index, name in enumerate(graph.nodes)}
    facts = _facts(model)
    for node in graph:
        shape = "cylinder" if node.op_type in VARIABLES else ""
        drawing.add_box(keys[node.name], [node.name, node.op_type], node.name, shape, _attributes(node))
    for node in graph:
        for tensor in node.inputs:
            if tensor.node in keys:
                drawing.add_arrow(keys[tensor.node], keys[node.name], facts.get(str(tensor), ""))
        for name in node.controls:
            if name in keys:
                drawing.add_arrow(keys[name], keys[node.name], dashed=True)
    for index, (name, outlet) in enumerate(zip(model.graph.output_names, model.graph.outputs)):
        label = model.graph.label(outlet)
        start = keys.get(NodeOutput.parse(label).node)
        if start is not None:
            drawing.add_box(f"out{index}", [name], shape="oval")
            drawing.add_arrow(start, f"out{index}", facts.get(label, ""))
    return drawing.text()


def _facts(model: FileNetwork) -> dict[str, str]:
    """Return tensor -> its known type and shape."""
    try:
        graph = model.infer().graph
    except PulseError:  # a graph that contradicts itself can still be looked at
        graph = model.graph
    facts = {graph.label(outlet): str(graph.fact(outlet)) for outlet in graph.wires()}
    return facts | {label.removesuffix(":0"): fact for label, fact in facts.items()}


def _attributes(node: GraphNode) -> str:
    texts: list[str] = []
    try:
        attributes = node.attributes
    except PulseError as error:  # a tensor that is not supported, such as text
        return str(error)
    for name, value in sorted(attributes.items()):
        match value:
            case None:
                continue
            case FunctionName():
                text = value.name
            case int() | float() | str() | tuple() | list() | TensorType():
                text = str(cast("object", value))
            case _:
                text = f"tensor {list(value.shape)}"
        texts.append(
            f"{name}={text if len(text) <= _MAX_ATTRIBUTE_LENGTH else f'{text[:_MAX_ATTRIBUTE_LENGTH]}…'}"
        )
    return ", ".join(texts)
