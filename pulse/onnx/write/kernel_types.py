"""Operators in types for which onnxruntime has a kernel.

Onnxruntime has no kernel for some types that ONNX allows for an operator, such as a Where of i16, and does not load the
file. Such a node is written in a wider type, between casts. The results are the same: the operators choose and move
elements, or add them. Products are left out, since onnxruntime's own do not wrap around.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onnx import defs, helper, shape_inference

from pulse.facts import BOOL, DTYPES
from pulse.onnx.proto import AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto
from pulse.onnx.subgraph import graphs_of
from pulse.onnx.tensors import element_type
from pulse.onnx.write.graph import Names
from pulse.support.record import record

_TO_I32 = {"i16": "i32", "u16": "i32"}
_TO_I64 = {"u32": "i64"}
_OPERATORS = {
    "Where": {**_TO_I32, "u64": "i64", "bool": "u8"},
    "ArgMax": {**_TO_I32, **_TO_I64},
    "ArgMin": {**_TO_I32, **_TO_I64},
    "CumSum": _TO_I64,
    "Max": _TO_I32,
    "Min": _TO_I32,
    "Pad": _TO_I32,
    "Pow": {**_TO_I32, "i8": "i32", "u8": "i32", **_TO_I64},
    "ReduceL1": _TO_I64,
    "ReduceMax": _TO_I64,
    "ReduceMean": _TO_I64,
    "ReduceMin": _TO_I64,
    "ReduceSum": _TO_I64,
    "TopK": {"u16": "i32", **_TO_I64},
}
_KEPT = {("Where", "B"), ("Pow", "T")}
"""Operator and type parameter that is not widened: the condition, and the base, whose powers would not wrap around."""
_BOOLEAN = frozenset(
    ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "And", "Or", "Xor", "Not", "IsNaN", "IsInf")
)
"""Operators that return booleans."""
WIDER_TYPES: Mapping[str, Mapping[int, int]] = {
    op_type: {element_type(DTYPES[name]): element_type(DTYPES[wide]) for name, wide in types.items()}
    for op_type, types in _OPERATORS.items()
}
"""Operator -> the element types without a kernel, each with the type in which the operator is written."""


def widen_types(proto: ModelProto, names: Names) -> None:
    """Write the nodes of a file, those of bodies included, in types for which onnxruntime has kernels.

    names  all names of the file
    """
    if not any(node.op_type in WIDER_TYPES for node in _all_nodes(proto.graph)):
        return
    if not _element_types(proto.graph) & {code for types in WIDER_TYPES.values() for code in types}:
        return
    (version,) = (entry.version for entry in proto.opset_import if not entry.domain)
    _Widening(version, names).widen(proto.graph, shape_inference.infer_shapes(proto).graph, {})


def _bodies(node: NodeProto) -> list[GraphProto]:
    return [attribute.g for attribute in node.attribute if attribute.type == AttributeProto.GRAPH]


def _all_nodes(graph: GraphProto) -> Iterable[NodeProto]:
    return (node for part in graphs_of(graph) for node in part.node)


def _element_types(graph: GraphProto) -> set[int]:
    """Return the element types that occur in a graph: a wire has that of an input or a constant, a cast's, or bool."""
    codes = {tensor.data_type for tensor in graph.initializer}
    codes |= {value.type.tensor_type.elem_type for value in graph.input}
    for node in _all_nodes(graph):
        if node.op_type in _BOOLEAN:
            codes.add(element_type(BOOL))
        for attribute in node.attribute:
            if node.op_type == "Cast":
                codes.add(attribute.i)
            if attribute.type == AttributeProto.TENSOR:
                codes.add(attribute.t.data_type)
    return codes


@record
class _Widening:
    """The pass over one file of an opset."""

    opset: int
    names: Names

    def widen(self, graph: GraphProto, inferred: GraphProto, outside: Mapping[str, int]) -> None:
        """Widen the nodes of a graph; ``inferred`` is the same graph with the types of all wires."""
        types = {**outside, **{tensor.name: tensor.data_type for tensor in graph.initializer}}
        values: list[ValueInfoProto] = [*inferred.input, *inferred.value_info, *inferred.output]
        types |= {value.name: value.type.tensor_type.elem_type for value in values}
        nodes: list[NodeProto] = []
        for node, same in zip(list(graph.node), inferred.node, strict=True):
            for body, inferred_body in zip(_bodies(node), _bodies(same), strict=True):
                self.widen(body, inferred_body, types)
            nodes += self._widen_node(node, types)
        del graph.node[:]
        graph.node.extend(nodes)

    def _widen_node(self, node: NodeProto, types: Mapping[str, int]) -> list[NodeProto]:
        """Return the node, with casts around it if onnxruntime lacks its kernel."""
        wider = WIDER_TYPES.get(node.op_type, {})
        if not wider:
            return [node]
        schema: Any = defs.get_schema(node.op_type, self.opset)
        input_types = _type_names(schema.inputs, len(node.input))
        to_wide = {
            type_name: wider[types[name]]
            for name, type_name in zip(node.input, input_types)
            if name and types[name] in wider and (node.op_type, type_name) not in _KEPT
        }
        before: list[NodeProto] = []
        after: list[NodeProto] = []
        for slot, type_name in enumerate(input_types):
            if node.input[slot] and type_name in to_wide:
                before.append(self._cast(node.input[slot], to_wide[type_name]))
                node.input[slot] = before[-1].output[0]
        for slot, type_name in enumerate(_type_names(schema.outputs, len(node.output))):
            name = node.output[slot]
            if name and type_name in to_wide:
                wide = self.names.new(f"{name}.wide")
                node.output[slot] = wide
                if node.name == name:
                    node.name = wide
                after.append(helper.make_node("Cast", [wide], [name], name, to=types[name]))
        return [*before, node, *after]

    def _cast(self, name: str, code: int) -> NodeProto:
        wide = self.names.new(f"{name}.wide")
        return helper.make_node("Cast", [name], [wide], wide, to=code)


def _type_names(parameters: Sequence[Any], count: int) -> list[str]:
    """Return the type parameter of each of ``count`` inputs or outputs; the last one of a schema may be repeated."""
    return [parameters[min(slot, len(parameters) - 1)].type_str for slot in range(count)]
