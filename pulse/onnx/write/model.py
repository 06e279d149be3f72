"""A pulsed model as an ONNX ModelProto."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, ValueInfoProto, checker, defs, helper, shape_inference

from pulse.dim import SymbolScope, TDim
from pulse.errors import WriteError, file_errors
from pulse.facts import I64, TypedFact
from pulse.graph import OutletId
from pulse.interface import Port
from pulse.metadata import (
    RECIPE,
    AwaitedMetadata,
    PortMetadata,
    StateMetadata,
    StreamMetadata,
    is_exported,
)
from pulse.onnx.operators import families as families
from pulse.onnx.tensors import element_type
from pulse.onnx.write.clock import ClockWriter
from pulse.onnx.write.graph import GraphWriter, value_info
from pulse.onnx.write.kernel_types import widen_types
from pulse.onnx.write.walk import check_size, check_writers, write_graph
from pulse.pulsify.network import PulsedNetwork
from pulse.support.printable import printable
from pulse.typed import TypedNetwork
from pulse.version import __version__

OPSETS = range(13, 27)
"""The versions of the default domain that can be written."""


def to_onnx(model: PulsedNetwork, opset: int = 17, metadata: Mapping[str, str] | None = None) -> ModelProto:
    """Write a pulsed model with standard operators, each of its states as an input and an output.

    opset     the opset of the default domain
    metadata  more entries for the file; those of the model that was read are kept
    Raises    WriteError: ops that ONNX of this opset cannot express

    The metadata of the file lists which output feeds which input; see ``pulse.metadata``.
    """
    if opset not in OPSETS:
        raise WriteError(f"opset {opset} cannot be written; choose one of {OPSETS[0]} to {OPSETS[-1]}")
    latest = defs.onnx_opset_version()
    if opset > latest:
        raise WriteError(
            f"opset {opset} is not known to the installed onnx {onnx.__version__}; install a newer one, or choose one "
            f"of {OPSETS[0]} to {latest}"
        )
    return _Export(model, opset).proto(metadata or {})


def offline_to_onnx(model: TypedNetwork, opset: int) -> ModelProto:
    """Write an offline model with standard operators, its symbols as names of sizes.

    Raises  WriteError: ops that ONNX of this opset cannot express, or that need a length in numbers
    """
    graph, writer = model.graph, GraphWriter(opset)
    order = graph.order(graph.outputs)
    check_writers(graph, order, model.title)
    check_size(graph, order, model.title)
    names = {outlet: writer.names.new(graph.label(outlet)) for outlet in graph.inputs}
    outputs = [writer.names.new(name) for name in graph.output_names]
    lengths = {
        outlet: axis
        for outlet in graph.inputs
        for axis, dim in enumerate(graph.fact(outlet).shape)
        if len(dim.symbols) == 1 and dim == TDim.of(next(iter(dim.symbols)))
    }
    symbols = {
        symbol for outlet in graph.inputs for dim in graph.fact(outlet).shape for symbol in dim.symbols
    }
    has_one_length = len(symbols) == 1 and bool(lengths)
    clock = ClockWriter(
        writer, next(iter(symbols)) if has_one_length else SymbolScope().symbol("T"), has_one_length
    )
    write_graph(writer, clock, graph, order, names, outputs, graph.outputs)
    new_names = writer.rename_outputs(outputs)
    if has_one_length and clock.end is not None:
        outlet, axis = next(iter(lengths.items()))
        _read_length(writer, names[outlet], axis, clock.end)
    elif clock.end is not None or writer.states:
        raise WriteError(f"{model.title}: it computes with the length of the stream; write it in pulses")
    input_infos = [_symbolic(names[outlet], graph.fact(outlet)) for outlet in graph.inputs]
    results = [_symbolic(name, graph.fact(outlet)) for name, outlet in zip(outputs, graph.outputs)]
    port_names = {value.name for value in (*input_infos, *results)}
    node_outputs = {name for node in writer.nodes for name in node.output}
    wires = {new_names.get(name, name): outlet for outlet, name in names.items()}
    inside = [
        _symbolic(name, graph.fact(outlet))
        for name, outlet in wires.items()
        if name in node_outputs - port_names
    ]
    return _assemble(writer, model.title, input_infos, results, inside)


def _assemble(
    writer: GraphWriter,
    title: str,
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    inside: Sequence[ValueInfoProto],
    **producer: str,
) -> ModelProto:
    """Return the file of all nodes that are written; ``inside`` has the types of wires between them."""
    graph = helper.make_graph(
        writer.nodes, printable(title) or "model", inputs, outputs, writer.read_constants(), value_info=inside
    )
    imports = [helper.make_opsetid("", writer.opset)]
    proto = helper.make_model(
        graph, opset_imports=imports, ir_version=helper.find_min_ir_version_for(imports), **producer
    )
    widen_types(proto, writer.names)
    return proto


def _read_length(writer: GraphWriter, x: str, axis: int, result: str) -> None:
    """Compute the length of the stream first, from the shape of an input."""
    axis_tensor = writer.constant(np.array(axis, np.int64), "axis")
    shape = writer.names.new(f"{x}.shape")
    writer.nodes[:0] = [
        helper.make_node("Shape", [x], [shape], shape),
        helper.make_node("Gather", [shape, axis_tensor], [result], result),
    ]


def _symbolic(name: str, fact: TypedFact) -> ValueInfoProto:
    sizes = [int(dim) if dim.is_const else str(dim) for dim in fact.shape]
    return helper.make_tensor_value_info(name, element_type(fact.dtype), sizes)


def save(proto: ModelProto, path: str | PathLike[str]) -> None:
    """Write a file. Raises WriteError: the folder refuses."""
    with file_errors(Path(path), "written", WriteError, "check the folder"):
        Path(path).write_bytes(proto.SerializeToString())


class _Export:
    """The export of one model to a file."""

    def __init__(self, model: PulsedNetwork, opset: int) -> None:
        self._model = model
        self._graph = GraphWriter(opset)
        self._clock = ClockWriter(self._graph, model.symbol)
        self._names: dict[OutletId, str] = {}

    def proto(self, metadata: Mapping[str, str]) -> ModelProto:
        model, graph = self._model, self._model.graph
        order = graph.order(model.targets)
        check_writers(graph, order, model.title)
        check_size(graph, order, model.title)
        for port, outlet in zip(model.inputs, graph.inputs, strict=True):
            self._names[outlet] = self._graph.names.new(port.name)
        outputs = [self._graph.names.new(port.name) for port in model.outputs]
        for register in model.registers:
            self._names[register.read] = self._graph.add_state(register.name, register.initial)
        write_graph(self._graph, self._clock, graph, order, self._names, outputs, model.targets)
        for register in model.registers:
            self._graph.keep(self._names[register.read], self._names[register.write])
        new_names = self._graph.rename_outputs(outputs)
        self._names = {outlet: new_names.get(name, name) for outlet, name in self._names.items()}
        return self._check(self._with_ports(outputs, metadata))

    def _with_ports(self, outputs: Sequence[str], metadata: Mapping[str, str]) -> ModelProto:
        writer, model = self._graph, self._model
        ports = zip(model.inputs, model.graph.inputs)
        inputs = [value_info(self._names[outlet], port.dtype, port.shape) for port, outlet in ports]
        results = [value_info(name, port.dtype, port.shape) for name, port in zip(outputs, model.outputs)]
        for pair in writer.states:
            inputs.append(value_info(pair.read, pair.initial.dtype, pair.initial.shape))
            results.append(value_info(pair.write, pair.initial.dtype, pair.initial.shape))
        if self._clock.end is not None:
            inputs.append(value_info(self._clock.end, I64, ()))
        port_names = {value.name for value in (*inputs, *results)}
        wires = self._wires(port_names)
        producer = {"producer_name": "pulse", "producer_version": __version__}
        proto = _assemble(writer, model.title, inputs, results, wires, **producer)
        inherited = {
            key: text
            for key, text in model.metadata.items()
            if key != RECIPE and not is_exported({key: text})
        }
        helper.set_model_props(proto, {**inherited, **metadata, **self._metadata(outputs).dump()})
        return proto

    def _wires(self, port_names: set[str]) -> list[ValueInfoProto]:
        """Return the shapes of the wires that the pulsed graph has too."""
        node_outputs = {name for node in self._graph.nodes for name in node.output}
        wires = {
            name: value_info(name, (fact := self._model.graph.fact(outlet)).dtype, fact.sizes)
            for outlet, name in self._names.items()
            if name in node_outputs and name not in port_names
        }
        return list(wires.values())

    def _metadata(self, outputs: Sequence[str]) -> StreamMetadata:
        model = self._model
        return StreamMetadata(
            symbol=model.symbol.name,
            pulse=model.pulse,
            inputs=tuple(
                _port_metadata(self._names[outlet], port)
                for port, outlet in zip(model.inputs, model.graph.inputs)
            ),
            outputs=tuple(_port_metadata(name, port) for name, port in zip(outputs, model.outputs)),
            states=tuple(
                StateMetadata.of(pair.read, pair.write, pair.initial) for pair in self._graph.states
            ),
            end=self._clock.end,
            awaits=tuple(
                AwaitedMetadata(wire.frames, wire.offset, str(wire.length)) for wire in model.awaited_wires()
            ),
            assumptions=tuple(str(assumption) for assumption in model.typed.scope.assumptions),
        )

    def _check(self, proto: ModelProto) -> ModelProto:
        try:
            checks: Any = import_module("onnx.checker")
            checks.check_model(proto, full_check=True)
        except (checker.ValidationError, shape_inference.InferenceError) as error:
            reason = " ".join(str(error).split())
            opset, title = self._graph.opset, self._model.title
            raise WriteError(
                f"{title}: opset {opset} of ONNX does not allow it ({reason}); try another opset"
            ) from error
        return proto


def _port_metadata(name: str, port: Port) -> PortMetadata:
    port_name = port.name if port.name != name else ""
    return PortMetadata(name, port.axis, port.delay, str(port.rate), str(port.length), port_name)
