"""An ONNX graph under construction: nodes, shared constants, and the pairs that carry state."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from pulse.errors import WriteError
from pulse.facts import Array, DType, is_symbolic
from pulse.onnx.proto import NodeProto, TensorProto, ValueInfoProto
from pulse.onnx.tensors import element_type, onnx_dtype
from pulse.support.naming import free_name
from pulse.support.record import record


def value_info(name: str, dtype: DType, sizes: Sequence[int]) -> ValueInfoProto:
    """Return the declaration of a wire."""
    from onnx import helper

    return helper.make_tensor_value_info(name, element_type(dtype), list(sizes))


def dtype_and_sizes(value: ValueInfoProto) -> tuple[DType, list[int]]:
    """Return the type and the sizes of a declared wire of constant shape."""
    tensor = value.type.tensor_type
    return onnx_dtype(tensor.elem_type, value.name), [dim.dim_value for dim in tensor.shape.dim]


@record(eq=False)
class StatePair:
    """An input that the caller feeds with an output of the previous pulse.

    initial  its value in the first pulse
    """

    read: str
    write: str
    initial: Array = field(repr=False)


@record
class Names:
    """The names of one file, bodies included, all different."""

    used_names: set[str] = field(default_factory=set[str])

    def new(self, name: str) -> str:
        """Take ``name``, with a number if it is taken already, and return it."""
        new_name = free_name(name, lambda text: not text or text in self.used_names)
        self.used_names.add(new_name)
        return new_name


@record
class GraphWriter:
    """The nodes of a graph in the order of their execution.

    A body of a node has names and constants in common with the graph around it.
    """

    opset: int
    names: Names = field(default_factory=Names)
    constants: dict[tuple[str, tuple[int, ...], bytes], TensorProto] = field(
        default_factory=dict[tuple[str, tuple[int, ...], bytes], TensorProto]
    )
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    states: list[StatePair] = field(default_factory=list[StatePair])
    aliases: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def body(self) -> "GraphWriter":
        """Return a graph inside a node's attribute."""
        return GraphWriter(self.opset, self.names, self.constants)

    def add(self, op_type: str, inputs: Iterable[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Append a node whose outputs have names already."""
        from onnx import helper

        name = next(name for name in outputs if name)
        self.nodes.append(helper.make_node(op_type, list(inputs), list(outputs), name, **attributes))

    def constant(self, value: Array, name: str) -> str:
        """Store a tensor once, and return its name; equal tensors share it.

        Raises WriteError: it depends on a length.
        """
        from onnx import numpy_helper

        if is_symbolic(value):
            raise WriteError(f"{name}: its value depends on the length of the stream")
        dense = np.ascontiguousarray(value).reshape(value.shape)
        key = (dense.dtype.str, dense.shape, dense.tobytes())
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(dense, self.names.new(name))
        return self.constants[key].name

    def read_constants(self) -> list[TensorProto]:
        """Return the constants that a node reads, in bodies too; onnxruntime warns of others."""
        names = _names_read(self.nodes)
        return [tensor for tensor in self.constants.values() if tensor.name in names]

    def add_state(self, name: str, initial: Array) -> str:
        """Add an input whose first value is ``initial``; ``keep`` sets its next value."""
        input_name = self.names.new(name)
        self.states.append(StatePair(input_name, self.names.new(f"{input_name}.next"), initial))
        return input_name

    def keep(self, input_name: str, value: str) -> None:
        """Set the value that a state has in the next pulse."""
        (pair,) = (pair for pair in self.states if pair.read == input_name)
        self.record_alias(value, pair.write)

    def record_alias(self, value: str, name: str) -> None:
        """Record that a wire is to have the name of an output; ``rename_outputs`` renames it."""
        self.aliases.append((value, name))

    def rename_outputs(self, outputs: Collection[str]) -> dict[str, str]:
        """Give wires the names of outputs: rename them, or copy those that have a fixed name.

        outputs  wires that have the name of an output already
        Returns  the replaced names, old to new
        """
        node_outputs = {name for node in self.nodes for name in node.output}.difference(outputs)
        new_names: dict[str, str] = {}
        copies: list[tuple[str, str]] = []
        for value, name in self.aliases:
            if value in node_outputs and value not in new_names:
                new_names[value] = name
            else:
                copies.append((value, name))
        rename(self.nodes, new_names)
        for value, name in copies:
            self.add("Identity", [new_names.get(value, value)], [name])
        return new_names


def _names_read(nodes: Iterable[NodeProto]) -> set[str]:
    """Return the names of wires that nodes read, and the outputs of bodies."""
    names: set[str] = set()
    for node in nodes:
        names.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                names |= _names_read(attribute.g.node)
                names.update(value.name for value in attribute.g.output)
    return names


def rename(nodes: Iterable[NodeProto], names: Mapping[str, str]) -> None:
    """Replace names of wires, in bodies too."""
    for node in nodes:
        for wires in (node.input, node.output):
            wires[:] = [names.get(name, name) for name in wires]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                rename(attribute.g.node, names)
