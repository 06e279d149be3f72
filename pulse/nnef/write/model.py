"""Write a model as NNEF: its ONNX nodes in NNEF's operators. In pulses, an iteration of a scan is a pulse."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from onnx import GraphProto, ModelProto, ValueInfoProto, numpy_helper, shape_inference

from pulse.dim import Symbol, SymbolScope, TDim
from pulse.errors import WriteError
from pulse.facts import Array, DType
from pulse.metadata import StreamMetadata
from pulse.nnef.archive import Archive
from pulse.nnef.operators import families as families
from pulse.nnef.properties import properties_fragment
from pulse.nnef.syntax import Assignment, Call, Document, Expression, Fragment, Name
from pulse.nnef.write.bounds import bound_texts, without_bounds
from pulse.nnef.write.expansion import expand
from pulse.nnef.write.graph import DocumentParts, Scope, SizeTexts, kind_of
from pulse.nnef.write.scan import ScanOperationWriter
from pulse.nnef.write.walk import check_writers, write_nodes
from pulse.onnx.read.metadata_entries import metadata_of
from pulse.onnx.subgraph import graphs_of
from pulse.onnx.tensors import onnx_dtype
from pulse.onnx.write.model import offline_to_onnx, to_onnx
from pulse.pulsify.network import PulsedNetwork
from pulse.substitution import Terms
from pulse.support.wording import spell
from pulse.typed import TypedNetwork

MAX_TRIED_LENGTH = 1 << 12
"""The largest length that is tried to find one for which no wire is empty."""
OPSET = 17
"""The opset of the intermediate ONNX operators."""
TRACT_TYPE_LETTERS: Mapping[str, str] = {"f": "F", "i": "I", "u": "U"}
"""How tract spells the kinds of types that NNEF has no name for."""
TRACT = "tract_"
"""How the operators of tract's registry begin."""
DIFFERENT_IN_TRACT = frozenset({"deconv"})
"""Operators that tract interprets differently from the standard."""


def to_nnef(model: PulsedNetwork | TypedNetwork) -> Archive:
    """Write a model with the operators of NNEF and of tract.

    Raises  WriteError: nodes that these cannot express, by name

    An offline model is plain NNEF as far as its operators are; its symbols are tract's. A pulsed model is, too, without
    states. One with states is one call of ``tract_core_scan``, whose states tract keeps from run to run; each run is
    one iteration of it. The stream's length, if it is needed, is the last input: 1 << 45 until the stream has ended.
    """
    if isinstance(model, PulsedNetwork):
        return _Pulsed(model).archive()
    return _Offline(model).archive()


class _Export:
    """The export of one model to an archive."""

    def __init__(self, proto: ModelProto, title: str, symbols: Iterable[str] = ()) -> None:
        inferred = shape_inference.infer_shapes(proto, data_prop=True)
        expand(inferred)
        check_writers(inferred.graph, title)
        self.graph = shape_inference.infer_shapes(inferred, data_prop=True).graph
        self.symbols = [*symbols]
        self.shared = DocumentParts()
        self.shared.used_names.update(self.symbols)
        stored = (tensor for part in graphs_of(self.graph) for tensor in part.initializer)
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in stored}
        self.root = Scope(self.shared, constants, _facts(self.graph, constants))

    def begin(self, fed: Collection[str]) -> tuple[list[str], list[str]]:
        """Declare the inputs, without those that carry state; their names here and in ONNX."""
        values = [value for value in self.graph.input if value.name not in fed]
        names = [self.root.declare(value.name) for value in values]
        for value, name in zip(values, names):
            self.root.assign(name, external_call(value))
        return names, [value.name for value in values]

    def finish(
        self, names: Sequence[str], results: Sequence[str], fragments: Sequence[Fragment] = ()
    ) -> Archive:
        """Return the archive; it names tract's registry if it needs that."""
        body, fragments_all = tuple(self.root.body), (*self.shared.fragments, *fragments)
        called = {
            name
            for part in (body, *(fragment.body or () for fragment in fragments_all))
            for name in _called_operators(part)
        }
        extensions = [("tract_symbol", symbol) for symbol in self.symbols]
        if any(name.startswith(TRACT) or name in DIFFERENT_IN_TRACT for name in called):
            extensions.insert(0, ("tract_registry", "tract_core"))
        document = Document("network", tuple(names), tuple(results), body, fragments_all, tuple(extensions))
        return Archive(document, self.shared.tensors)


class _Offline(_Export):
    """A model over whole streams."""

    def __init__(self, model: TypedNetwork) -> None:
        facts = [model.graph.fact(outlet) for outlet in model.graph.inputs]
        symbols = {symbol.name for fact in facts for dim in fact.shape for symbol in dim.symbols}
        strange = sorted(name for name in symbols if not name.isascii() or not name.isidentifier())
        if strange:
            raise WriteError(
                f"{model.title}: the symbol {strange[0]} is not an identifier of NNEF; name it with {spell('inputs')}"
            )
        super().__init__(offline_to_onnx(_without_empty(model), OPSET), model.title, sorted(symbols))

    def archive(self) -> Archive:
        names, _ = self.begin(())
        texts = bound_texts(self.graph.node, self.root.facts, self.root.constants)
        self.shared.bounds.update(texts)
        write_nodes(
            self.root, without_bounds(self.graph.node, texts, [value.name for value in self.graph.output])
        )
        return self.finish(names, [self.root.wire(value.name).text for value in self.graph.output])


def _without_empty(model: TypedNetwork) -> TypedNetwork:
    """Return the model with symbols assumed large enough that no wire is empty: tract has no empty tensors."""
    terms = Terms(SymbolScope(), {})
    dims = {dim for node in model.graph.nodes for outlet in node.outputs for dim in outlet.fact.shape}
    alone: dict[Symbol, list[TDim]] = {}
    for dim in dims:
        if len(dim.symbols) == 1:
            alone.setdefault(next(iter(dim.symbols)), []).append(dim)
    terms.assume(model.scope)
    for symbol, lengths in alone.items():
        sizes = (
            size for size in range(MAX_TRIED_LENGTH) if all(dim.eval({symbol: size}) > 0 for dim in lengths)
        )
        if (min_size := next(sizes, 0)) > 0:
            terms.scope.assume(f"{terms.dim(TDim.of(symbol))} >= {min_size}")
    return replace(terms.model(model), spending=model.spending)


class _Pulsed(_Export):
    """A model in pulses."""

    def __init__(self, model: PulsedNetwork) -> None:
        proto = to_onnx(model, OPSET)
        super().__init__(proto, model.title)
        metadata = StreamMetadata.parse(metadata_of(proto))
        assert metadata is not None
        self._metadata = metadata

    def archive(self) -> Archive:
        names, inputs = self.begin({state.input for state in self._metadata.states})
        outputs = [port.name for port in self._metadata.outputs]
        if self._metadata.states:
            results = self._scan(inputs, outputs)
        else:
            write_nodes(self.root, self.graph.node)
            results = [self.root.wire(name).text for name in outputs]
        return self.finish(names, results, [properties_fragment(self._metadata, names, results)])

    def _scan(self, inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
        """Write the whole graph as the body of a scan with one iteration in each run."""
        axes = {port.name: port.axis for port in self._metadata.inputs}
        scan = ScanOperationWriter.begin(self.root, "pulse")
        for name in inputs:
            axis = axes.get(name)
            if axis is None:
                scan.add_whole(name, self.root.wire(name))
            else:
                scan.add_slice(name, self.root.wire(name), axis, self._frames(name, axis))
        for state in self._metadata.states:
            value = state.value()
            dtype, sizes = self.root.fact(state.input)
            initial = np.zeros([int(size) for size in sizes], dtype) if value is None else value
            scan.add_state(state.input, self.root.tensor(initial, f"{state.input}.initial"), state.output)
        results = [self.shared.identifier(name) for name in outputs]
        write_nodes(scan.inner, self.graph.node)
        for port in self._metadata.outputs:
            scan.add_result(
                port.name, port.axis, 1 if port.axis is None else self._frames(port.name, port.axis)
            )
        scan.finish(results, resets=False)
        return results

    def _frames(self, name: str, axis: int) -> int:
        return int(self.root.fact(name)[1][axis])


def _called_operators(value: object) -> Iterator[str]:
    """Yield the operators of a part of a document."""
    if isinstance(value, Call):
        yield value.operator
        yield from _called_operators((value.positional, [argument for _, argument in value.named]))
    elif isinstance(value, Assignment):
        yield from _called_operators(value.value)
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[object]", value):
            yield from _called_operators(item)


def external_call(value: ValueInfoProto) -> Call:
    """Return an input of a graph; with tract's own operator if NNEF has no name for the type."""
    declared = value.type.tensor_type
    dtype = onnx_dtype(declared.elem_type, value.name)
    shape: list[Expression] = [
        Name(dim.dim_param) if dim.dim_param else int(dim.dim_value) for dim in declared.shape.dim
    ]
    external_type = kind_of(dtype)
    if external_type != "scalar":
        return Call("external", (), (("shape", shape),), external_type)
    if dtype == np.float32:
        return Call("external", (), (("shape", shape),))
    type_name = f"{TRACT_TYPE_LETTERS[dtype.kind]}{dtype.itemsize * 8}"
    return Call("tract_core_external", (), (("shape", shape), ("datum_type", type_name)))


def _facts(graph: GraphProto, constants: Mapping[str, Array]) -> dict[str, tuple[DType, SizeTexts]]:
    facts: dict[str, tuple[DType, SizeTexts]] = {
        name: (value.dtype, value.shape) for name, value in constants.items()
    }
    for part in graphs_of(graph):
        values: list[ValueInfoProto] = [*part.input, *part.output, *part.value_info]
        for value in values:
            declared = value.type.tensor_type
            if declared.HasField("shape"):
                sizes = [
                    int(dim.dim_value) if dim.HasField("dim_value") else str(dim.dim_param)
                    for dim in declared.shape.dim
                ]
                facts[value.name] = onnx_dtype(declared.elem_type, value.name), tuple(sizes)
    return facts
