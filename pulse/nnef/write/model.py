"""A pulsed model as NNEF: its ONNX nodes in NNEF's operators; one turn of a scan is one pulse, and carries the states."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, numpy_helper, shape_inference

from pulse.facts import Array, DType
from pulse.nnef import operators as operators
from pulse.nnef.archive import Archive
from pulse.nnef.syntax import TRACT_CORE, Assignment, Call, Document, Expression, Fragment
from pulse.nnef.write.expansion import expand
from pulse.nnef.write.graph import Scope, Shared, Sizes, kind_of
from pulse.nnef.write.scan import ScanWriter
from pulse.nnef.write.walk import check_writers, graphs_of, write_nodes
from pulse.onnx.metadata import Notes
from pulse.onnx.write.graph import form
from pulse.onnx.write.model import to_onnx
from pulse.pulsify.network import PulsedNetwork

OPSET = 17
"""Of the ONNX operators in between."""
NAMED: Mapping[str, str] = {"f": "F", "i": "I", "u": "U"}
"""How tract spells the kinds of types that NNEF has no name for."""


def to_nnef(model: PulsedNetwork) -> Archive:
    """Write a pulsed model with the operators of NNEF and of tract.

    Raises  WriteError: nodes that these cannot express, by name

    A model without states is a graph of its nodes. One with states is one call of ``tract_core_scan``, whose states
    tract keeps from run to run; each run is one turn of it. The stream's length, where it is needed, is the last input:
    1 << 45 until the stream has ended.
    """
    return _Export(model, to_onnx(model, OPSET)).archive()


class _Export:
    """One model on its way to an archive."""

    def __init__(self, model: PulsedNetwork, proto: ModelProto) -> None:
        self._model = model
        inferred = shape_inference.infer_shapes(proto, data_prop=True)
        expand(inferred)
        check_writers(inferred.graph, model.title)
        self._graph = shape_inference.infer_shapes(inferred, data_prop=True).graph
        notes = Notes.parse({entry.key: entry.value for entry in proto.metadata_props})
        assert notes is not None
        self._notes = notes
        self._shared = Shared()
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in _stored(self._graph)}
        self._root = Scope(self._shared, constants, _facts(self._graph, constants))

    def archive(self) -> Archive:
        root, notes = self._root, self._notes
        fed = {note.input for note in notes.states}
        inputs = [value.name for value in self._graph.input if value.name not in fed]
        names = [root.declare(name) for name in inputs]
        for name, identifier in zip(inputs, names):
            root.assign(identifier, external(*root.fact(name)))
        outputs = [note.name for note in notes.outputs]
        if notes.states:
            results = self._scan(inputs, outputs)
        else:
            write_nodes(root, self._graph.node)
            results = [root.wire(name).text for name in outputs]
        properties = self._properties()
        document = Document(
            "network",
            tuple(names),
            tuple(results),
            tuple(root.body),
            (*self._shared.fragments, properties),
            (("tract_registry", TRACT_CORE),),
        )
        return Archive(document, self._shared.tensors)

    def _scan(self, inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
        """The whole graph as the body of a scan with one turn in each run."""
        axes = {note.name: note.axis for note in self._notes.inputs}
        scan = ScanWriter.begin(self._root, "pulse")
        for name in inputs:
            axis = axes.get(name)
            if axis is None:
                scan.full(name, self._root.wire(name))
            else:
                scan.slice(name, self._root.wire(name), axis, self._root.fact(name)[1][axis])
        for note in self._notes.states:
            value = note.value()
            dtype, sizes = self._root.fact(note.input)
            initial = np.zeros(sizes, dtype) if value is None else value
            scan.state(note.input, self._root.tensor(initial, f"{note.input}.initial"), note.output)
        results = [self._shared.identifier(name) for name in outputs]
        write_nodes(scan.inner, self._graph.node)
        for note in self._notes.outputs:
            axis = note.axis
            scan.result(note.name, axis, 1 if axis is None else self._root.fact(note.name)[1][axis])
        scan.finish(results, resets=False)
        return results

    def _properties(self) -> Fragment:
        """What tract calls the properties of a pulsed model; the axis of a port that does not stream is -1."""
        model = self._model
        axes = [
            [-1 if port.axis is None else port.axis for port in ports]
            for ports in (model.inputs, model.outputs)
        ]
        entries: list[Expression] = [
            ("pulse.delay", _integers([int(port.delay) for port in model.outputs])),
            ("pulse.input_axes", _integers(axes[0])),
            ("pulse.output_axes", _integers(axes[1])),
            ("pulse.streaming_symbol", [model.symbol.name]),
        ]
        body = (Assignment("properties", entries),)
        return Fragment("tract_core_properties", (), (("properties", "(string, tensor<scalar>)[]"),), body)


def external(dtype: DType, sizes: Sizes) -> Call:
    """An input of a graph; tract's own operator where NNEF has no name for the type."""
    shape: list[Expression] = [*sizes]
    kind = kind_of(dtype)
    if kind != "scalar":
        return Call("external", (), (("shape", shape),), kind)
    if dtype == np.float32:
        return Call("external", (), (("shape", shape),))
    named = f"{NAMED[dtype.kind]}{dtype.itemsize * 8}"
    return Call("tract_core_external", (), (("shape", shape), ("datum_type", named)))


def _integers(numbers: Sequence[int]) -> Expression:
    return Call("tract_core_cast", ([*numbers],), (("to", "i64"),))


def _stored(graph: GraphProto) -> Iterable[TensorProto]:
    for each in graphs_of(graph):
        yield from each.initializer


def _facts(graph: GraphProto, constants: Mapping[str, Array]) -> dict[str, tuple[DType, Sizes]]:
    found: dict[str, tuple[DType, Sizes]] = {
        name: (value.dtype, value.shape) for name, value in constants.items()
    }
    for each in graphs_of(graph):
        values: list[ValueInfoProto] = [*each.input, *each.output, *each.value_info]
        for value in values:
            dtype, sizes = form(value)
            found[value.name] = dtype, tuple(sizes)
    return found
