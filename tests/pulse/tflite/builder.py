"""Small .tflite files: tensors, operators and subgraphs, written with the schema's own builders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import flatbuffers
import numpy as np

from pulse.facts import Array

schema: Any = import_module("tflite")

KINDS = {
    "float32": "FLOAT32",
    "float16": "FLOAT16",
    "int8": "INT8",
    "uint8": "UINT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
    "complex64": "COMPLEX64",
    "resource": "RESOURCE",
}


@dataclass
class TensorSpec:
    """A tensor of a file under construction."""

    name: str
    shape: Sequence[int]
    kind: str
    data: Array | None = None
    scale: Sequence[float] = ()
    zero: Sequence[int] = ()
    axis: int = 0
    variable: bool = False


@dataclass
class OperatorSpec:
    """An operator of a file under construction; options by the accessors' names, ``inner`` its intermediate tensors."""

    kind: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    version: int = 1
    inner: Sequence[int] = ()


class SubgraphBuilder:
    """A subgraph: tensors are numbered in the order in which they are made."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.tensors: list[TensorSpec] = []
        self.operators: list[OperatorSpec] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []

    def tensor(self, shape: Sequence[int], kind: str = "float32", name: str = "", **more: Any) -> int:
        """A tensor that is computed; -1 stands for a size that is open."""
        self.tensors.append(TensorSpec(name or f"t{len(self.tensors)}", tuple(shape), kind, **more))
        return len(self.tensors) - 1

    def input(self, shape: Sequence[int], kind: str = "float32", name: str = "x", **more: Any) -> int:
        """Add an input tensor; return its index."""
        self.inputs.append(self.tensor(shape, kind, name, **more))
        return self.inputs[-1]

    def constant(self, value: Any, kind: str = "", **more: Any) -> int:
        """A tensor that the file stores."""
        array = np.asarray(value, kind or None)
        return self.tensor(array.shape, array.dtype.name, data=array, **more)

    def node(
        self,
        kind: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: str = "",
        version: int = 1,
        **fields: Any,
    ) -> None:
        """Add an operator."""
        self.operators.append(OperatorSpec(kind, inputs, outputs, options, fields, version))

    def result(
        self,
        kind: str,
        inputs: Sequence[int],
        shape: Sequence[int],
        options: str = "",
        version: int = 1,
        dtype: str = "float32",
        quantized: tuple[float, int] | None = None,
        **fields: Any,
    ) -> int:
        """An operator of one output; the number of that."""
        more = {} if quantized is None else {"scale": [quantized[0]], "zero": [quantized[1]]}
        output = self.tensor(shape, dtype, **more)
        self.node(kind, inputs, [output], options, version, **fields)
        return output


Signature = Mapping[str, Mapping[str, int]]
"""Inputs and Outputs: name -> tensor."""


def file_bytes(
    *graphs: SubgraphBuilder,
    signature: Signature | None = None,
    signatures: Mapping[str, tuple[int, Signature]] | None = None,
) -> bytes:
    """The file; ``signatures`` by their keys, each of a subgraph."""
    named = {} if signature is None else {"serving_default": (0, signature)}
    return _Writer(graphs).file(signatures or named)


class _Writer:
    def __init__(self, graphs: Sequence[SubgraphBuilder]) -> None:
        self._b = flatbuffers.Builder(1024)
        self._graphs = graphs
        self._buffers: list[Array | None] = [None]
        self._codes: list[tuple[str, int]] = []

    def file(self, named: Mapping[str, tuple[int, Signature]]) -> bytes:
        b = self._b
        graphs = self._tables("Model", "Subgraphs", [self._graph(graph) for graph in self._graphs])
        codes = self._tables("Model", "OperatorCodes", [self._code(*code) for code in self._codes])
        buffers = self._tables("Model", "Buffers", [self._buffer(data) for data in self._buffers])
        signatures = None
        if named:
            offsets = [self._signature(key, *signature) for key, signature in named.items()]
            signatures = self._tables("Model", "SignatureDefs", offsets)
        schema.ModelStart(b)
        schema.ModelAddVersion(b, 3)
        schema.ModelAddOperatorCodes(b, codes)
        schema.ModelAddSubgraphs(b, graphs)
        schema.ModelAddBuffers(b, buffers)
        if signatures is not None:
            schema.ModelAddSignatureDefs(b, signatures)
        b.Finish(schema.ModelEnd(b), file_identifier=b"TFL3")
        return bytes(b.Output())

    def _tables(self, owner: str, name: str, offsets: Sequence[int]) -> int:
        getattr(schema, f"{owner}Start{name}Vector")(self._b, len(offsets))
        for offset in reversed(offsets):
            self._b.PrependUOffsetTRelative(offset)
        return self._b.EndVector()

    def _vector(self, values: Sequence[Any], dtype: type) -> int:
        return self._b.CreateNumpyVector(np.asarray(values, dtype))

    def _buffer(self, data: Array | None) -> int:
        stored = None if data is None else self._b.CreateNumpyVector(np.frombuffer(data.tobytes(), np.uint8))
        schema.BufferStart(self._b)
        if stored is not None:
            schema.BufferAddData(self._b, stored)
        return schema.BufferEnd(self._b)

    def _code(self, kind: str, version: int) -> int:
        number = getattr(schema.BuiltinOperator, kind, schema.BuiltinOperator.CUSTOM)
        custom = None if hasattr(schema.BuiltinOperator, kind) else self._b.CreateString(kind)
        schema.OperatorCodeStart(self._b)
        schema.OperatorCodeAddDeprecatedBuiltinCode(self._b, min(number, 127))
        schema.OperatorCodeAddBuiltinCode(self._b, number)
        schema.OperatorCodeAddVersion(self._b, version)
        if custom is not None:
            schema.OperatorCodeAddCustomCode(self._b, custom)
        return schema.OperatorCodeEnd(self._b)

    def _graph(self, graph: SubgraphBuilder) -> int:
        b, name = self._b, self._b.CreateString(graph.name)
        tensors = self._tables("SubGraph", "Tensors", [self._tensor(spec) for spec in graph.tensors])
        nodes = self._tables("SubGraph", "Operators", [self._operator(spec) for spec in graph.operators])
        ends = [self._vector(ports, np.int32) for ports in (graph.inputs, graph.outputs)]
        schema.SubGraphStart(b)
        schema.SubGraphAddName(b, name)
        schema.SubGraphAddTensors(b, tensors)
        schema.SubGraphAddOperators(b, nodes)
        schema.SubGraphAddInputs(b, ends[0])
        schema.SubGraphAddOutputs(b, ends[1])
        return schema.SubGraphEnd(b)

    def _tensor(self, spec: TensorSpec) -> int:
        b, name, number = self._b, self._b.CreateString(spec.name), 0
        if spec.data is not None:
            self._buffers.append(spec.data)
            number = len(self._buffers) - 1
        shape = self._vector([max(size, 1) if size < 0 else size for size in spec.shape], np.int32)
        signature = self._vector(spec.shape, np.int32) if any(size < 0 for size in spec.shape) else None
        quantization = self._quantization(spec) if len(spec.scale) else None
        schema.TensorStart(b)
        schema.TensorAddShape(b, shape)
        schema.TensorAddType(b, getattr(schema.TensorType, KINDS[spec.kind]))
        schema.TensorAddBuffer(b, number)
        schema.TensorAddName(b, name)
        schema.TensorAddIsVariable(b, spec.variable)
        schema.TensorAddHasRank(b, True)
        if signature is not None:
            schema.TensorAddShapeSignature(b, signature)
        if quantization is not None:
            schema.TensorAddQuantization(b, quantization)
        return schema.TensorEnd(b)

    def _quantization(self, spec: TensorSpec) -> int:
        b = self._b
        scale, zero = self._vector(spec.scale, np.float32), self._vector(spec.zero, np.int64)
        schema.QuantizationParametersStart(b)
        schema.QuantizationParametersAddScale(b, scale)
        schema.QuantizationParametersAddZeroPoint(b, zero)
        schema.QuantizationParametersAddQuantizedDimension(b, spec.axis)
        return schema.QuantizationParametersEnd(b)

    def _operator(self, spec: OperatorSpec) -> int:
        b, code = self._b, (spec.kind, spec.version)
        if code not in self._codes:
            self._codes.append(code)
        options = self._options(spec) if spec.options else None
        ports = [self._vector(numbers, np.int32) for numbers in (spec.inputs, spec.outputs, spec.inner)]
        schema.OperatorStart(b)
        schema.OperatorAddOpcodeIndex(b, self._codes.index(code))
        schema.OperatorAddInputs(b, ports[0])
        schema.OperatorAddOutputs(b, ports[1])
        if spec.inner:
            schema.OperatorAddIntermediates(b, ports[2])
        if options is not None:
            schema.OperatorAddBuiltinOptionsType(b, getattr(schema.BuiltinOptions, spec.options))
            schema.OperatorAddBuiltinOptions(b, options)
        return schema.OperatorEnd(b)

    def _options(self, spec: OperatorSpec) -> int:
        b = self._b
        fields = {
            name: self._vector(value, np.int32)
            if isinstance(value, list)
            else b.CreateString(value)
            if isinstance(value, str)
            else value
            for name, value in spec.fields.items()
        }
        getattr(schema, f"{spec.options}Start")(b)
        for name, value in fields.items():
            getattr(schema, f"{spec.options}Add{name}")(b, value)
        return getattr(schema, f"{spec.options}End")(b)

    def _signature(self, name: str, graph: int, ports: Signature) -> int:
        b, key = self._b, self._b.CreateString(name)
        vectors = [
            self._tables(
                "SignatureDef", side, [self._port(name, number) for name, number in ports[side].items()]
            )
            for side in ("Inputs", "Outputs")
        ]
        schema.SignatureDefStart(b)
        schema.SignatureDefAddInputs(b, vectors[0])
        schema.SignatureDefAddOutputs(b, vectors[1])
        schema.SignatureDefAddSignatureKey(b, key)
        schema.SignatureDefAddSubgraphIndex(b, graph)
        return schema.SignatureDefEnd(b)

    def _port(self, name: str, number: int) -> int:
        text = self._b.CreateString(name)
        schema.TensorMapStart(self._b)
        schema.TensorMapAddName(self._b, text)
        schema.TensorMapAddTensorIndex(self._b, number)
        return schema.TensorMapEnd(self._b)
