"""Nodes and functions of a GraphDef, before they are a model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from pulse.errors import LoadError
from pulse.facts import Array
from pulse.support.record import record
from pulse.tensorflow.messages import Proto
from pulse.tensorflow.tensors import FunctionName, KnownSizes, TensorType, dims_in, dims_of, tensor_value

OUTPUT_NAMES: dict[str, tuple[str, ...]] = {
    "Switch": ("output_false", "output_true"),
    "RefSwitch": ("output_false", "output_true"),
    "Merge": ("output", "value_index"),
    "TensorArrayV3": ("handle", "flow"),
    "FusedBatchNorm": ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"),
    "FusedBatchNormV2": ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"),
    "FusedBatchNormV3": (
        "y",
        "batch_mean",
        "batch_variance",
        "reserve_space_1",
        "reserve_space_2",
        "reserve_space_3",
    ),
    "TopKV2": ("values", "indices"),
    "TopK": ("values", "indices"),
    "MaxPoolWithArgmax": ("output", "argmax"),
    "BlockLSTM": ("i", "cs", "f", "o", "ci", "co", "h"),
    "BlockLSTMV2": ("i", "cs", "f", "o", "ci", "co", "h"),
    "LSTMBlockCell": ("i", "cs", "f", "o", "ci", "co", "h"),
    "GRUBlockCell": ("r", "u", "c", "h"),
    "CudnnRNN": ("output", "output_h", "output_c", "reserve_space"),
    "CudnnRNNV2": ("output", "output_h", "output_c", "reserve_space", "host_reserved"),
    "CudnnRNNV3": ("output", "output_h", "output_c", "reserve_space", "host_reserved"),
    "Unique": ("y", "idx"),
    "BroadcastGradientArgs": ("r0", "r1"),
    "SoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "TensorListPopBack": ("output_handle", "tensor"),
    "Qr": ("q", "r"),
    "Svd": ("s", "u", "v"),
}
"""Operators whose outputs have several names, by which the inputs in a function's body read them."""


class NodeOutput(NamedTuple):
    """A tensor of a graph: one output of one node."""

    node: str
    slot: int = 0

    def __str__(self) -> str:
        return self.node if self.slot == 0 else f"{self.node}:{self.slot}"

    @classmethod
    def parse(cls, text: str) -> "NodeOutput":
        """Return ``node`` or ``node:1``. Raises LoadError: the text is not the name of a tensor."""
        name, colon, slot = text.rpartition(":")
        if not colon:
            return cls(text)
        if not name or not slot.isdecimal() or len(slot) > 6:
            raise LoadError(f"{text!r} is not the name of a tensor; give node or node:1")
        return cls(name, int(slot))


def function_attribute(
    attributes: Mapping[str, Any], name: str, error: Callable[[str], Exception]
) -> FunctionName:
    """Return a function among the attributes of a node. Raises what ``error`` makes of a message."""
    value = attributes.get(name)
    if not isinstance(value, FunctionName):
        raise error(f"attribute {name} must name a function; export the model again")
    return value


@record(eq=False)
class GraphNode:
    """One node.

    name       its name in the graph
    op_type    its operator
    inputs     the tensors that it reads
    controls   nodes that have to run before it
    stored     its attributes in the file
    added      attributes that the file does not have
    values     the values of the enclosing function's attributes
    """

    name: str
    op_type: str
    inputs: tuple[NodeOutput, ...] = ()
    controls: tuple[str, ...] = ()
    stored: Proto = None
    added: Mapping[str, Any] = field(default_factory=dict[str, Any])
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """Name -> value: numbers, text, TensorType, dims, arrays, FunctionName, lists.

        Raises LoadError: one of them cannot be read
        """
        protos: Mapping[str, Proto] = {} if self.stored is None else self.stored
        attributes = {
            name: _attribute(protos[name], f"{self.name} ({self.op_type}), attribute {name}", self.values)
            for name in sorted(protos)
            if name not in self.added and not name.startswith("_")
        }
        return {**attributes, **self.added}

    @property
    def predecessors(self) -> tuple[str, ...]:
        """The names of the nodes that have to run before it: those that it reads, and its controls."""
        return (*(tensor.node for tensor in self.inputs), *self.controls)

    def error(self, message: str) -> LoadError:
        """Return a LoadError that names the node."""
        return LoadError(f"{self.name} ({self.op_type}): {message}")

    def function(self, name: str) -> FunctionName:
        """Return a function among the attributes. Raises LoadError: it is missing."""
        return function_attribute(self.attributes, name, self.error)

    def type_number(self, *names: str) -> int:
        """Return the number of the first type attribute that there is; 0 if there is none."""
        for name in names:
            value = self.attributes.get(name)
            if isinstance(value, TensorType):
                return value.base_number
        return 0

    def with_inputs(self, inputs: Iterable[NodeOutput], controls: Iterable[str]) -> "GraphNode":
        """Return the same node with other inputs and control inputs."""
        return replace(self, inputs=tuple(inputs), controls=tuple(controls))


def read_tensor(node: GraphNode) -> Array | None:
    """Return the tensor of a Const; None if it has none. Raises LoadError: an attribute of the node cannot be read."""
    value: Any = node.attributes.get("value")
    return cast("Array", value) if isinstance(value, np.ndarray) else None


def declared_type(node: GraphNode) -> tuple[TensorType | None, KnownSizes]:
    """Return type and shape that the attributes of a node declare. Raises LoadError: one of them cannot be read."""
    type_, shape = node.attributes.get("dtype"), node.attributes.get("shape")
    return (type_ if isinstance(type_, TensorType) else None), dims_in(shape)


def _attribute(value: Proto, location: str, values: Mapping[str, Any]) -> Any:
    attribute_type = value.WhichOneof("value")
    match attribute_type:
        case None:
            return None
        case "list":
            for name in ("s", "i", "f", "b", "type", "shape", "tensor", "func"):
                items = getattr(value.list, name)
                if len(items):
                    return [_convert_item(name, item, location) for item in items]
            return []
        case "placeholder":
            if value.placeholder not in values:
                raise LoadError(
                    f"{location}: its value {value.placeholder!r} is not given; export the model again"
                )
            return values[value.placeholder]
        case _:
            return _convert_item(attribute_type, getattr(value, attribute_type), location)


def _convert_item(attribute_type: str, item: Any, location: str) -> Any:
    match attribute_type:
        case "s":
            return item.decode(errors="replace")
        case "type":
            return TensorType(item)
        case "shape":
            return dims_of(item)
        case "tensor":
            return tensor_value(item, location)
        case "func":
            attributes = {name: _attribute(item.attr[name], location, {}) for name in sorted(item.attr)}
            return FunctionName(item.name, attributes)
        case _:
            return item


@record(eq=False)
class LibraryFunction:
    """A function of the library: nodes that read its arguments by their names.

    name      its name in the file
    inputs    names of the arguments
    types     their types, by number
    nodes     the nodes of its body
    outputs   its results
    effects   nodes that always run
    """

    name: str
    inputs: tuple[str, ...]
    types: tuple[int, ...]
    nodes: tuple[GraphNode, ...]
    outputs: tuple[NodeOutput, ...]
    effects: tuple[str, ...] = ()


def graph_nodes(protos: Sequence[Proto], subject: str) -> list[GraphNode]:
    """Return the nodes of a GraphDef. Raises LoadError: two have one name."""
    nodes: list[GraphNode] = []
    names: set[str] = set()
    for proto in protos:
        if not proto.name or not proto.op or proto.name in names:
            problem = (
                f"two nodes are called {proto.name!r}"
                if proto.name in names
                else "a node without name or operator"
            )
            raise LoadError(f"{subject}: {problem}; the file is damaged, export it again")
        names.add(proto.name)
        inputs = tuple(NodeOutput.parse(text) for text in proto.input if not text.startswith("^"))
        controls = tuple(text[1:] for text in proto.input if text.startswith("^"))
        nodes.append(GraphNode(proto.name, proto.op, inputs, controls, proto.attr))
    return nodes


def read_function(
    proto: Proto, values: Mapping[str, Any], outputs_of: Mapping[str, tuple[str, ...]]
) -> LibraryFunction:
    """Return a function of the library, its placeholders of attributes being ``values``.

    Raises LoadError: no node computes an input of another one, or an output
    """
    subject = f"function {proto.signature.name}"
    ops = {node.name: node.op for node in proto.node_def}

    def tensor(text: str) -> NodeOutput:
        parts = text.split(":")
        if len(parts) == 1:
            return NodeOutput(text)
        name = parts[0]
        number = parts[-1] if len(parts) == 3 else "0"
        if len(parts) > 3 or name not in ops or not number.isdecimal() or len(number) > 6:
            raise LoadError(f"{subject}: {text!r} is not an output of a node in it; export the model again")
        names = outputs_of.get(ops[name], ())
        first = names.index(parts[1]) if parts[1] in names else 0
        return NodeOutput(name, first + int(number))

    nodes: list[GraphNode] = []
    for node in proto.node_def:
        inputs = tuple(tensor(text) for text in node.input if not text.startswith("^"))
        controls = tuple(text[1:] for text in node.input if text.startswith("^"))
        nodes.append(GraphNode(node.name, node.op, inputs, controls, node.attr, {}, values))
    signature = proto.signature
    missing = [arg.name for arg in signature.output_arg if arg.name not in proto.ret]
    if missing:
        raise LoadError(f"{subject}: nothing computes its output {missing[0]}; export the model again")
    return LibraryFunction(
        signature.name,
        tuple(arg.name for arg in signature.input_arg),
        tuple(TensorType(arg.type).base_number for arg in signature.input_arg),
        tuple(nodes),
        tuple(tensor(proto.ret[arg.name]) for arg in signature.output_arg),
        tuple(proto.control_ret[name] for name in sorted(proto.control_ret)),
    )
