"""Read an ONNX file into a FileNetwork."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pulse.dim import SymbolScope
from pulse.errors import LoadError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.infer.claims import Claim
from pulse.infer.fact import InferenceFact
from pulse.infer.inputs import check_given, input_facts
from pulse.infer.network import FileNetwork, InferenceGraph, Input, add_model_constant
from pulse.onnx.operators import families as families
from pulse.onnx.proto import AttributeProto, GraphProto, NodeProto, ValueInfoProto
from pulse.onnx.read.file import ModelSource, read_source
from pulse.onnx.read.inputs import claimed_fact, declared_inputs, frees_lengths, named_fact
from pulse.onnx.read.metadata_entries import metadata_of
from pulse.onnx.read.op import OnnxOp
from pulse.onnx.read.opsets import opset_versions
from pulse.onnx.registry import DEFAULT_DOMAINS, USER_TRANSLATORS
from pulse.onnx.subgraph import BodyGraph, free_names, nodes_in_order
from pulse.onnx.tensors import tensor_value
from pulse.support.budget import Budget, Spending, count_spending, current_spending


def load(
    source: ModelSource,
    inputs: Mapping[str, str] | None = None,
    constants: Mapping[str, Any] | None = None,
    ignore_value_info: bool = False,
    budget: Mapping[str, float] | None = None,
    tensors: Mapping[str, Array] | None = None,
) -> FileNetwork:
    """Read the nodes of an ONNX file from a path, its bytes or a ModelProto, for ``pulse.load``.

    inputs, constants, ignore_value_info, budget   as in ``pulse.load``
    tensors  initializers whose data is not in the model, by name
    Raises   LoadError: the file cannot be read, or ``inputs`` or ``constants`` does not fit it
    """
    check_given(inputs, constants)
    with count_spending(Spending(Budget.of(budget))):
        return read(source, inputs or {}, constants or {}, ignore_value_info, tensors)


def read(
    source: ModelSource,
    inputs: Mapping[str, str],
    constants: Mapping[str, Any],
    ignore_value_info: bool = False,
    tensors: Mapping[str, Array] | None = None,
) -> FileNetwork:
    """Return the model of a path, of bytes or of a ModelProto. Raises LoadError: it is not valid ONNX."""
    proto, title, folder = read_source(source)
    scope = SymbolScope()
    declared = declared_inputs(proto.graph)
    facts = input_facts(declared, inputs, scope, constants)
    builder = _Builder(opset_versions(proto, title), folder, title)
    builder.read(proto.graph, facts, tensors or {})
    metadata = metadata_of(proto)
    stale = ignore_value_info or frees_lengths(declared, inputs)
    claims, names = ((), ()) if stale else (builder.claims(proto.graph), builder.names(proto.graph, scope))
    return FileNetwork(builder.graph, scope, title, metadata, claims, names)


class _Builder:
    """Grows the graph of a FileNetwork from a GraphProto."""

    def __init__(self, opsets: Mapping[str, int], folder: Path | None, title: str) -> None:
        self.graph = InferenceGraph()
        self._opsets = opsets
        self._folder = folder
        self._title = title
        self._values: dict[str, OutletId] = {}
        self._infos: dict[str, ValueInfoProto] = {}

    def read(
        self, proto: GraphProto, inputs: Mapping[str, InferenceFact], tensors: Mapping[str, Array]
    ) -> None:
        if proto.sparse_initializer:
            raise LoadError(f"{self._title}: sparse initializers are not supported; export them dense")
        self._infos = {value.name: value for value in (*proto.value_info, *proto.output)}
        for name, fact in inputs.items():
            if fact.value is not None:
                self._add_constant(name, fact.value)
                continue
            (outlet,) = self.graph.add(name, Input(fact), (), [fact])
            self.graph.inputs.append(outlet)
            self._define(name, outlet)
        for tensor in proto.initializer:
            override = tensors.get(tensor.name)
            subject = f"initializer {tensor.name}"
            self._add_constant(
                tensor.name, tensor_value(tensor, self._folder, subject) if override is None else override
            )
        for node in nodes_in_order(proto, self._values):
            self._add_node(node)
        outputs = [value.name for value in proto.output]
        self.graph.set_outputs([self._value(name, "the list of outputs") for name in outputs], outputs)

    def claims(self, proto: GraphProto) -> tuple[Claim, ...]:
        """Return the facts that the file states of its nodes' outputs."""
        infos = ((value, self._values.get(value.name)) for value in (*proto.value_info, *proto.output))
        node_outputs = (
            (value, outlet) for value, outlet in infos if outlet and self.graph.node(outlet).inputs
        )
        claims = ((outlet, claimed_fact(value)) for value, outlet in node_outputs)
        return tuple((outlet, fact) for outlet, fact in claims if fact is not None)

    def names(self, proto: GraphProto, scope: SymbolScope) -> tuple[Claim, ...]:
        """Return the file's names for sizes of its outputs, if an input is not fully known."""
        if all(self.graph.fact(outlet).to_typed() is not None for outlet in self.graph.inputs):
            return ()
        outputs = ((self._values[value.name], value) for value in proto.output)
        return tuple(
            (outlet, named_fact(value, scope)) for outlet, value in outputs if self.graph.node(outlet).inputs
        )

    def _define(self, name: str, outlet: OutletId) -> None:
        if name in self._values:
            raise LoadError(
                f"{self._title}: two nodes define the value {name!r}; the file is broken, export it again"
            )
        self._values[name] = outlet

    def _value(self, name: str, reader: str) -> OutletId:
        if name not in self._values:
            raise LoadError(
                f"{self._title}: {reader} reads {name!r}, which no node before it defines; export it again"
            )
        return self._values[name]

    def _add_constant(self, name: str, value: Array) -> None:
        current_spending().stored += value.size
        self._define(name, add_model_constant(self.graph, name, value))

    def _add_node(self, node: NodeProto) -> None:
        op_type, title, inputs, outputs = node.op_type, node.name, list(node.input), tuple(node.output)
        subject = title or (outputs[0] if outputs else op_type)
        names_read = [name for name in inputs if name]
        slots = iter(range(len(names_read)))
        attributes = {entry.name: self._attribute(entry, subject) for entry in node.attribute}
        if op_type == "Constant" and len(outputs) == 1 and _is_stored(node, attributes):
            self._add_constant(outputs[0], attributes["value"])
            return
        bodies = [value for value in attributes.values() if isinstance(value, BodyGraph)]
        captures = tuple(dict.fromkeys(name for body in bodies for name in body.captures))
        op = OnnxOp(
            op_type=op_type,
            domain=node.domain,
            opset=self._opsets.get(node.domain, 1),
            title=title,
            attributes=attributes,
            slots=tuple([next(slots) if name else None for name in inputs]),
            outputs=outputs,
            trace=_trace(node),
            captures=captures,
            stated=tuple([self._infos.get(name) for name in outputs if name]),
        )
        reads = [self._value(name, subject) for name in (*names_read, *captures)]
        label = next((name for name in outputs if name), subject)
        outlets = self.graph.add(label, op, reads, [InferenceFact() for _ in outputs])
        for name, outlet in zip(outputs, outlets):
            if name:
                self._define(name, outlet)

    def _body(self, proto: GraphProto, inputs: Mapping[str, InferenceFact]) -> InferenceGraph:
        builder = _Builder(self._opsets, self._folder, self._title)
        builder.read(proto, inputs, {})
        return builder.graph

    def _attribute(self, attribute: AttributeProto, subject: str) -> Any:
        attribute_type, location = attribute.type, f"{subject}, attribute {attribute.name}"
        if attribute_type == AttributeProto.TENSOR:
            return tensor_value(attribute.t, self._folder, location)
        if attribute_type == AttributeProto.GRAPH:
            return BodyGraph(attribute.g, free_names(attribute.g), self._body)
        if attribute.ref_attr_name:
            raise LoadError(
                f"{location}: cannot be read (it is a parameter of a function); export the model again"
            )
        if attribute_type == AttributeProto.UNDEFINED:
            return None
        name = _FIELDS.get(attribute_type)
        if name is None:
            raise LoadError(
                f"{location}: cannot be read (its type is {attribute_type}); export the model again"
            )
        value: Any = getattr(attribute, name)
        if attribute_type == AttributeProto.STRING:
            return value.decode(errors="replace")
        if attribute_type == AttributeProto.STRINGS:
            return [text.decode(errors="replace") for text in value]
        return list(value) if name.endswith("s") else value


_FIELDS = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
"""Type of an attribute -> the field that holds it; a tensor and a graph are read otherwise."""


def _is_stored(node: NodeProto, attributes: Mapping[str, Any]) -> bool:
    """Return whether a node Constant equals an initializer: a tensor of the file, not an operator of a plugin."""
    plain = node.domain in DEFAULT_DOMAINS and node.op_type not in USER_TRANSLATORS and not node.input
    return plain and list(attributes) == ["value"] and isinstance(attributes["value"], np.ndarray)


def _trace(node: NodeProto) -> str:
    """Return the stack trace that exporters leave: PyTorch's under a key of the metadata, older ones as doc string."""
    for entry in node.metadata_props:
        if entry.key.endswith("stack_trace"):
            return entry.value
    return node.doc_string
