"""The nodes of an ONNX graph, each written by the function of its operator."""

from collections.abc import Iterable
from typing import Any

from onnx import GraphProto, NodeProto, helper

from pulse.errors import WriteError
from pulse.nnef.registry import WRITERS
from pulse.nnef.syntax import Name
from pulse.nnef.write.graph import Scope
from pulse.nnef.write.node import OperationWriter
from pulse.onnx.proto import AttributeProto
from pulse.onnx.subgraph import graphs_of


def check_writers(graph: GraphProto, title: str) -> None:
    """Raise WriteError, listing every node whose operator has no writer."""
    nodes = [node for part in graphs_of(graph) for node in part.node]
    missing = [
        f"{node.name or node.output[0]} ({node.op_type})" for node in nodes if node.op_type not in WRITERS
    ]
    if missing:
        raise WriteError(
            f"{title}: NNEF and tract have no operators for {', '.join(missing)}; keep them out of the model, "
            "or write ONNX with states: a name that ends in .onnx"
        )


def write_nodes(scope: Scope, nodes: Iterable[NodeProto]) -> None:
    """Write nodes in order and add the identifiers of their outputs to ``scope.wire_of_name``."""
    for node in nodes:
        result = WRITERS[node.op_type](_context(scope, node))
        identifiers = [result] if isinstance(result, Name) else result
        for name, identifier in zip(node.output, identifiers):
            if name and identifier is not None:
                scope.wire_of_name[name] = identifier


def _context(scope: Scope, node: NodeProto) -> OperationWriter:
    attributes = {attribute.name: _value(attribute) for attribute in node.attribute}
    name = node.name or node.output[0]
    return OperationWriter(scope, name, node.op_type, tuple(node.input), tuple(node.output), attributes)


def _value(attribute: AttributeProto) -> Any:
    value: Any = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value
