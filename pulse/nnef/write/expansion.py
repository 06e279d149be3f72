"""Operators of ONNX that are replaced by simpler ones of ONNX before NNEF is written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from pulse.facts import Array
from pulse.onnx.proto import AttributeProto
from pulse.onnx.subgraph import graphs_of
from pulse.onnx.write.graph import Names, dtype_and_sizes
from pulse.support.record import record
from pulse.support.registry import Registry

Expander: TypeAlias = "Callable[[Expansion, NodeProto], None]"
EXPANDERS: Registry[str, Expander] = Registry()
"""Operator -> the function that adds the nodes in its place."""
expands = EXPANDERS.register


@record(eq=False)
class Expansion:
    """The nodes that replace one node.

    title      the node's name, with which new names begin
    names      the names of the whole model
    constants  constants of the whole model, by name; new ones are added
    values     declared wires by name
    added      the new constants
    nodes      the new nodes
    """

    title: str
    names: Names
    constants: dict[str, Array]
    values: Mapping[str, ValueInfoProto]
    added: list[TensorProto]
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])

    def name(self, suffix: str) -> str:
        """Take a new name for a wire, and return it."""
        return self.names.new(f"{self.title}.{suffix}")

    def add(self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Add a node whose outputs have names."""
        self.nodes.append(helper.make_node(op_type, list(inputs), list(outputs), outputs[-1], **attributes))

    def add_node(
        self, nodes: list[NodeProto], op_type: str, inputs: Sequence[str], suffix: str, **attributes: Any
    ) -> str:
        """Add a node; return its one output."""
        name = self.name(suffix)
        nodes.append(helper.make_node(op_type, list(inputs), [name], name, **attributes))
        return name

    def constant(self, value: Array) -> str:
        """Store a tensor; return its name."""
        name = self.name("constant")
        self.constants[name] = value
        self.added.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def integers(self, numbers: Sequence[int]) -> str:
        """Store a list of i64; return its name."""
        return self.constant(np.array([*numbers], np.int64))

    def number(self, value: float) -> str:
        """Store an f32; return its name."""
        return self.constant(np.array(value, np.float32))

    def sizes(self, name: str) -> list[int]:
        """Return the shape of a wire."""
        return dtype_and_sizes(self.values[name])[1]

    def value(self, name: str, sizes: Sequence[int]) -> ValueInfoProto:
        """Return the declaration of an f32 wire."""
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [*sizes])

    # These compute constants at once, and add nodes for other wires.

    def squeeze(self, nodes: list[NodeProto], x: str) -> str:
        """Remove the first axis."""
        if x in self.constants:
            return self.constant(self.constants[x][0])
        return self.add_node(nodes, "Squeeze", (x, self.integers([0])), "squeezed")

    def transpose(self, nodes: list[NodeProto], x: str) -> str:
        """Transpose a matrix."""
        if x in self.constants:
            return self.constant(self.constants[x].T)
        return self.add_node(nodes, "Transpose", (x,), "transposed", perm=[1, 0])

    def crop(self, nodes: list[NodeProto], x: str, start: int, stop: int) -> str:
        """Crop the last axis to some entries."""
        if x in self.constants:
            return self.constant(self.constants[x][..., start:stop])
        return self.add_node(
            nodes, "Slice", (x, self.integers([start]), self.integers([stop]), self.integers([-1])), "part"
        )


def expand(model: ModelProto) -> None:
    """Replace nodes in place; ``model`` has the shape of each of its wires."""
    names: set[str] = set()
    constants: dict[str, Array] = {}
    for graph in graphs_of(model.graph):
        constants.update({tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer})
        names.update(value.name for value in graph.input)
        names.update(name for node in graph.node for name in node.output)
    names.update(constants)
    _expand(model.graph, Names(names), constants, model.graph)


def _expand(graph: GraphProto, names: Names, constants: dict[str, Array], root: GraphProto) -> None:
    values = {value.name: value for value in (*graph.input, *graph.output, *graph.value_info)}
    nodes: list[NodeProto] = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _expand(attribute.g, names, constants, root)
        expander = EXPANDERS.get(node.op_type)
        if expander is None:
            nodes.append(node)
            continue
        tensors: list[TensorProto] = []
        expansion = Expansion(node.name or node.output[0], names, constants, values, tensors)
        expander(expansion, node)
        nodes += expansion.nodes
        root.initializer.extend(tensors)
    del graph.node[:]
    graph.node.extend(nodes)
