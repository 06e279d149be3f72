"""A document to an ONNX model: its inputs, its assignments in order, its outputs."""

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper

from pulse.dim import SymbolScope, TDim
from pulse.errors import LoadError
from pulse.facts import DType
from pulse.nnef.operators.elementwise import parse_type
from pulse.nnef.read.calls import EXTERNALS, AssignmentReader, Definitions, flat_names, require_unassigned
from pulse.nnef.read.files import NnefFiles
from pulse.nnef.read.node import GraphReader, NnefValue, NnefWire
from pulse.nnef.read.parser import parse
from pulse.nnef.read.position import Position
from pulse.nnef.read.pulses import read_timing
from pulse.nnef.read.standard import standard_fragments
from pulse.nnef.syntax import Assignment, Call, Document
from pulse.onnx.tensors import element_type
from pulse.support.budget import Budget, Spending
from pulse.support.printable import printable

OPSET = 17
"""The version of ONNX's operators into which NNEF is read."""
ELEMENT_TYPES: Mapping[str, type[np.generic]] = {
    "scalar": np.float32,
    "integer": np.int64,
    "logical": np.bool_,
    "": np.float32,
}
"""``external<type>`` -> the type of an input."""
SUPPORTED_EXTENSIONS = ("KHR_enable_fragment_definitions", "KHR_enable_operator_expressions")


def read_nnef(files: NnefFiles, budget: Mapping[str, float] | None) -> ModelProto:
    """Return the model of files as ONNX.

    budget  limits of what fragments and lists unfold to; see ``pulse.support.budget``
    Raises  LoadError: a file is damaged, or an operator is not supported
    """
    title = f"{files.title}: graph.nnef"
    document = parse(files.text(), title)
    return _DocumentReader(
        _definitions(files, document, title), document, Spending(Budget.of(budget))
    ).model()


def _definitions(files: NnefFiles, document: Document, title: str) -> Definitions:
    """Return fragments, symbols and extensions. Raises LoadError: an extension is not supported."""
    bodies = {fragment.name: fragment for fragment in document.fragments if fragment.body is not None}
    timing = read_timing(document, title)
    names = [] if timing.symbol is None else [timing.symbol]
    for words in document.extensions:
        keyword = words[0] if words else ""
        if keyword == "tract_symbol" and len(words) > 1:
            names.append("".join(words[1:]))
        elif keyword not in ("tract_registry", "tract_assert", *SUPPORTED_EXTENSIONS):
            raise LoadError(
                f"{title}: the extension {printable(' '.join(words))} is not supported; export without it"
            )
    standard = not any(words[0] == "tract_registry" for words in document.extensions if words)
    scope = SymbolScope()
    symbols = {name: TDim.of(scope.symbol(name)) for name in names}
    return Definitions(title, files, {**standard_fragments(), **bodies}, symbols, standard, timing)


class _DocumentReader:
    """The conversion of one document to an ONNX graph."""

    def __init__(self, definitions: Definitions, document: Document, spending: Spending) -> None:
        self._definitions, self._document = definitions, document
        self._assignments = AssignmentReader(definitions, spending)
        self._timing = definitions.timing
        self._graph = GraphReader.begin(OPSET, trims=self._timing.symbol is not None)
        self._graph.names.used_names.update(self._timing.late_outputs)
        self._inputs: dict[str, ValueInfoProto] = {}

    def model(self) -> ModelProto:
        """Return the whole document. Raises LoadError: it is not valid."""
        document, graph = self._document, self._graph
        scope: dict[str, NnefValue] = {}
        for assignment in document.body:
            self._read_assignment(assignment, scope)
        for name in document.inputs:
            if name not in self._inputs:
                raise self._error(f"the input {printable(name)} has no external; add one")
        outputs = [self._output(index, name, scope) for index, name in enumerate(document.outputs)]
        inputs = [self._inputs[name] for name in document.inputs]
        proto = helper.make_graph(graph.nodes, document.name, inputs, outputs, graph.tensors())
        model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        self._timing.finish(model, [value.name for value in outputs])
        return model

    def _error(self, reason: str) -> LoadError:
        return LoadError(f"{self._definitions.title}: {reason}")

    def _read_assignment(self, assignment: Assignment, scope: dict[str, NnefValue]) -> None:
        call, target = assignment.value, assignment.target
        if not isinstance(call, Call) or call.operator not in EXTERNALS:
            self._assignments.run([assignment], scope, self._graph)
            return
        names = flat_names(target)
        position = Position(scope, self._graph, tuple(names), self._definitions.title, assignment.line)
        require_unassigned(names, position)
        if not isinstance(target, str) or target not in self._document.inputs:
            raise position.error(f"{printable(str(names))} is not an input of the graph")
        scope[target] = self._external(target, call, position)

    def _external(self, name: str, call: Call, position: Position) -> NnefWire:
        node, graph = self._assignments.node(call, position), self._graph
        shape = node.arguments["shape"]
        if not isinstance(shape, list):
            raise node.error("shape must be a list")
        symbol = self._timing.symbol
        shape = self._timing.dims(node, shape, None if symbol is None else self._definitions.symbols[symbol])
        dtype: DType = np.dtype(ELEMENT_TYPES.get(call.type, np.float32))
        if call.operator == "tract_core_external":
            dtype = parse_type(node, node.text("datum_type"))
        dims: list[int | str] = []
        for dim in shape:
            if isinstance(dim, TDim) and not dim.is_const:
                if dim in self._definitions.symbols.values():
                    for symbol in dim.symbols:
                        graph.lengths.axis_of.setdefault(symbol, (name, len(dims)))
                dims.append(str(dim))
                continue
            size = node.as_integer(dim, "shape")
            if size < 0:
                raise node.error(f"its shape has the size {size}")
            dims.append(size)
        self._inputs[name] = helper.make_tensor_value_info(name, element_type(dtype), dims)
        graph.names.used_names.add(name)
        return NnefWire(name, dtype, tuple(dim if isinstance(dim, int) else None for dim in dims))

    def _output(self, index: int, name: str, scope: Mapping[str, NnefValue]) -> ValueInfoProto:
        wire, graph = scope.get(name), self._graph
        if not isinstance(wire, NnefWire):
            raise self._error(f"the output {printable(name)} is not a tensor of the graph")
        wire = self._timing.output(graph, index, wire)
        output = graph.names.new(name) if wire.name != name or name in self._inputs else name
        if output != wire.name:
            graph.nodes.append(helper.make_node("Identity", [wire.name], [output], output))
        return helper.make_tensor_value_info(output, element_type(wire.dtype), None)
