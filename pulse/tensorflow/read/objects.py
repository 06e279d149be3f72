"""Values of a SavedModel's variables from its objects.

Functions name the objects that they capture, and the checkpoint names the tensor of each object. This is needed if a
variable object contains another one, as in Keras 3: the graph for restoring has the outer ones, signatures read the
inner ones.
"""

from collections.abc import Mapping, Sequence

from google.protobuf.message import DecodeError

from pulse.errors import LoadError
from pulse.facts import Array
from pulse.support.wording import count_of
from pulse.tensorflow.graph_node import GraphNode
from pulse.tensorflow.messages import Proto, TrackableObjectGraph
from pulse.tensorflow.read.checkpoint import CheckpointTensors
from pulse.tensorflow.tensors import FunctionName

_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
"""The key of the checkpoint's own objects."""
_CALLS = ("StatefulPartitionedCall", "PartitionedCall")
_VALUE = "VARIABLE_VALUE"


def captured_values(
    nodes: Sequence[GraphNode],
    objects: Proto,
    checkpoint: CheckpointTensors,
    values: Mapping[str, Array],
    subject: str,
) -> dict[str, Array]:
    """Return variable -> its value in the checkpoint, for the variables that calls capture and that ``values`` lacks.

    Raises LoadError: the file or the checkpoint is damaged
    """
    numbers: dict[str, int] = {}
    for node in nodes:
        if node.op_type not in _CALLS:
            continue
        function = node.attributes.get("f")
        if not isinstance(function, FunctionName) or function.name not in objects.concrete_functions:
            continue
        object_numbers = list(objects.concrete_functions[function.name].bound_inputs)
        if len(object_numbers) > len(node.inputs):
            raise LoadError(
                f"{subject}: {node.name} ({node.op_type}) passes {count_of(len(node.inputs), 'tensor')} to a "
                "function that "
                f"captures {len(object_numbers)} objects; the file is damaged, get it again"
            )
        handles = node.inputs[len(node.inputs) - len(object_numbers) :]
        numbers.update(
            (handle.node, number)
            for handle, number in zip(handles, object_numbers)
            if handle.node not in values
        )
    if not numbers or _GRAPH not in checkpoint:
        return {}
    keys = _keys(objects, _read_objects(checkpoint, subject))
    return {name: checkpoint.tensor(keys[number]) for name, number in numbers.items() if number in keys}


def _read_objects(checkpoint: CheckpointTensors, subject: str) -> Proto:
    try:
        return TrackableObjectGraph.FromString(checkpoint.text(_GRAPH))
    except DecodeError:
        raise LoadError(f"{subject}: the objects of its checkpoint cannot be decoded; get it again") from None


def _keys(objects: Proto, saved_objects: Proto) -> dict[int, str]:
    """Return object -> the name of its tensor: both graphs are walked from their roots, by the names of children."""
    keys: dict[int, str] = {}
    stack, visited = [(0, 0)], {0}
    while stack:
        node_id, saved_id = stack.pop()
        if not (0 <= node_id < len(objects.nodes) and 0 <= saved_id < len(saved_objects.nodes)):
            continue
        for attribute in saved_objects.nodes[saved_id].attributes:
            if attribute.name == _VALUE and attribute.checkpoint_key:
                keys[node_id] = attribute.checkpoint_key
        children = {child.local_name: child.node_id for child in saved_objects.nodes[saved_id].children}
        for child in objects.nodes[node_id].children:
            if child.local_name in children and child.node_id not in visited:
                visited.add(child.node_id)
                stack.append((child.node_id, children[child.local_name]))
    return keys
