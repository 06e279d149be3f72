"""Values of a SavedModel's variables: its own graph for restoring maps tensors to variables."""

from collections.abc import Mapping, Sequence

from pulse.errors import LoadError
from pulse.facts import Array
from pulse.tensorflow.function_library import FunctionLibrary
from pulse.tensorflow.graph_node import GraphNode, NodeOutput
from pulse.tensorflow.messages import Proto
from pulse.tensorflow.read.assignments import ASSIGNMENTS
from pulse.tensorflow.read.checkpoint import CheckpointTensors
from pulse.tensorflow.read.effects import Variables
from pulse.tensorflow.read.flat import FlatGraph
from pulse.tensorflow.read.inlining import inline

_PASSED_OPERATORS = ("Identity", "IdentityN", "Cast")


def restored_values(
    nodes: Sequence[GraphNode],
    library: FunctionLibrary,
    saver: Proto,
    checkpoint: CheckpointTensors,
    subject: str,
) -> dict[str, Array]:
    """Return variable -> its value in the checkpoint.

    Names do not suffice: two variables may share one.

    Raises LoadError: the checkpoint lacks a tensor, or the graph is damaged
    """
    name = NodeOutput.parse(saver.restore_op_name).node if saver.restore_op_name else ""
    graph = FlatGraph(nodes, subject)
    if not name or name not in graph.nodes:
        return {}
    flat = FlatGraph(inline(graph.find_needed([name]).values(), library), subject)
    variables = Variables(flat, library)
    values: dict[str, Array] = {}
    for node in flat:
        if node.op_type not in ASSIGNMENTS:
            continue
        variable, key = variables.assigned_variable(node), _key(flat, node.inputs[1])
        if variable is not None and key is not None:
            values[variable] = checkpoint.tensor(key)
    return values


def _key(graph: FlatGraph, tensor: NodeOutput) -> str | None:
    """Return the name of a restored tensor in the checkpoint."""
    for _ in range(len(graph.nodes)):
        node = graph.nodes.get(tensor.node)
        if node is None:
            return None
        if node.op_type == "RestoreV2" and len(node.inputs) == 3:
            names = _texts(graph, node.inputs[1])
            return names[tensor.slot] if tensor.slot < len(names) else None
        slot = tensor.slot if node.op_type == "IdentityN" else 0
        if node.op_type not in _PASSED_OPERATORS or slot >= len(node.inputs):
            return None
        tensor = node.inputs[slot]
    return None


def _texts(graph: FlatGraph, tensor: NodeOutput) -> list[str]:
    """Return the entries of a constant of text. Raises LoadError: one of them is not UTF-8."""
    node = graph.nodes.get(tensor.node)
    if node is None or node.op_type != "Const" or "value" not in (node.stored or {}):
        return []
    protos: Mapping[str, Proto] = node.stored
    try:
        return [text.decode() for text in protos["value"].tensor.string_val]
    except UnicodeDecodeError:
        raise LoadError(f"{node.name} (Const): a name in it is not text; export the model again") from None
