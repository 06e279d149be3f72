"""A .tflite file as values: subgraphs of operators over tensors, verified, with its constants as arrays."""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pulse.errors import LoadError
from pulse.facts import DTYPES, Array, DType
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.tflite.read.verify import check_offsets

TENSOR_TYPES: Mapping[str, DType] = {
    "FLOAT32": DTYPES["f32"],
    "FLOAT16": DTYPES["f16"],
    "FLOAT64": DTYPES["f64"],
    "INT8": DTYPES["i8"],
    "INT16": DTYPES["i16"],
    "INT32": DTYPES["i32"],
    "INT64": DTYPES["i64"],
    "UINT8": DTYPES["u8"],
    "UINT16": DTYPES["u16"],
    "UINT32": DTYPES["u32"],
    "UINT64": DTYPES["u64"],
    "BOOL": DTYPES["bool"],
    "COMPLEX64": np.dtype(np.complex64),
}
CODE_DTYPES = tuple(map(np.dtype, (np.int8, np.uint8, np.int16)))
"""The types of activations that are stored as codes."""
RESOURCES = ("RESOURCE", "VARIANT")
MAX_TENSOR_AXES = 8
"""A tensor with more axes is refused."""
MAX_SCALE = float(1 << 40)
"""Scales from this one up, and below its reciprocal, are refused: products of three must fit in f32."""


@record(eq=False)
class Quantization:
    """The values of a tensor's codes: ``scale * (code - zero)``, with one pair for all or one for each channel."""

    scale: NDArray[np.float32]
    zero: NDArray[np.int64]
    axis: int


@record(eq=False)
class Tensor:
    """A tensor of a subgraph.

    name          its name in the file
    type_name     its type as named in the schema
    shape         its sizes, -1 if one is not fixed; None if the rank is unknown
    quantization  the scale and zero point of codes; None for plain numbers
    data          its value if the file stores it
    variable      whether it is kept from call to call
    """

    name: str
    type_name: str
    shape: tuple[int, ...] | None
    quantization: Quantization | None
    data: Array | None
    variable: bool

    @property
    def dtype(self) -> DType | None:
        """The type of its elements; None of handles and text."""
        return TENSOR_TYPES.get(self.type_name)

    @property
    def has_codes(self) -> bool:
        """Whether it is an activation stored as codes."""
        return self.quantization is not None and self.dtype in CODE_DTYPES

    @property
    def is_complex(self) -> bool:
        """Whether its wire has one more axis, of real and imaginary parts, which the file does not count."""
        return self.type_name == "COMPLEX64"


@record(eq=False)
class Operator:
    """A node.

    op_type          its kind as named in the schema
    inputs, outputs  the numbers of its tensors; -1 if omitted
    options          its options by name
    inner            the numbers of the tensors that only state the scales of its inner sums
    """

    op_type: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]
    inner: tuple[int, ...] = ()


@record(eq=False)
class Subgraph:
    """Operators in the order of their execution."""

    name: str
    tensors: Sequence[Tensor]
    operators: Sequence[Operator]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@record
class SubgraphSignature:
    """Names for the inputs and outputs of a subgraph."""

    key: str
    subgraph: int
    inputs: Mapping[int, str]
    outputs: Mapping[int, str]


@record(eq=False)
class TfliteFile:
    """A whole file."""

    subgraphs: Sequence[Subgraph]
    signatures: Sequence[SubgraphSignature]


@cache
def schema() -> Any:
    """Return the ``tflite`` package, which has no types. Importing it is slow, so it is done when a file is read."""
    try:
        return import_module("tflite")
    except ImportError as error:
        raise LoadError(f"the package tflite is missing ({error}); pip install tflite") from error


@cache
def _names(enumeration: str) -> Mapping[int, str]:
    """Number -> name of an enumeration of the schema."""
    members = _members(getattr(schema(), enumeration))
    return {number: name for name, number in members.items() if isinstance(number, int)}


def parse(data: bytes, subject: str) -> TfliteFile:
    """Parse the bytes of a file. Raises LoadError: they are damaged."""
    check_offsets(data, subject)
    try:
        return _Parser(data, subject).file()
    except (struct.error, ValueError, OverflowError) as error:
        raise LoadError(
            f"{subject}: a field reaches over the end of the file ({error}); get it again"
        ) from error


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _integers(value: Any) -> tuple[int, ...]:
    """Return a vector as returned by the package: an array, or 0 if the file has none."""
    return tuple(int(number) for number in value.tolist()) if isinstance(value, np.ndarray) else ()


def _array(value: Any, dtype: type[Any]) -> NDArray[Any]:
    return np.asarray(value if isinstance(value, np.ndarray) else [], dtype=dtype).copy()


class _Parser:
    """Verified bytes on their way to values."""

    def __init__(self, data: bytes, subject: str) -> None:
        self._data, self._subject = data, subject
        self._model: Any = schema().Model.GetRootAs(data, 0)

    def error(self, message: str) -> LoadError:
        return LoadError(f"{self._subject}: {message}; the file is damaged, get it again")

    def file(self) -> TfliteFile:
        model = self._model
        if model.Version() != 3:
            raise LoadError(f"{self._subject}: version {model.Version()} of the schema; only 3 is supported")
        op_types = [self._op_type(model.OperatorCodes(i)) for i in range(model.OperatorCodesLength())]
        graphs = [self._subgraph(model.Subgraphs(i), op_types) for i in range(model.SubgraphsLength())]
        if not graphs:
            raise self.error("it has no subgraph")
        signatures = [
            self._signature(model.SignatureDefs(i), graphs) for i in range(model.SignatureDefsLength())
        ]
        return TfliteFile(graphs, signatures)

    def _op_type(self, code: Any) -> str:
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        name = _names("BuiltinOperator").get(number)
        if name is None:
            raise LoadError(
                f"{self._subject}: operator {number} is newer than the supported schema; "
                "convert the model with an older TensorFlow"
            )
        return f"CUSTOM {_text(code.CustomCode())}" if name == "CUSTOM" else name

    def _subgraph(self, graph: Any, op_types: Sequence[str]) -> Subgraph:
        name = _text(graph.Name()) or "main"
        tensors = [self._tensor(graph.Tensors(i), name, i) for i in range(graph.TensorsLength())]

        def numbers(value: Any, part: str) -> tuple[int, ...]:
            integers = _integers(value)
            if any(not -1 <= index < len(tensors) for index in integers):
                raise self.error(
                    f"{part} of {name} names one of {list(integers)}, and there are {count_of(len(tensors), 'tensor')}"
                )
            return integers

        operators: list[Operator] = []
        for index in range(graph.OperatorsLength()):
            operator = graph.Operators(index)
            if operator.OpcodeIndex() >= len(op_types):
                raise self.error(f"operator {index} of {name} has no code")
            op_type, part = op_types[int(operator.OpcodeIndex())], f"operator {index}"
            inputs = numbers(operator.InputsAsNumpy(), part)
            outputs = numbers(operator.OutputsAsNumpy(), part)
            options = self._options(operator, f"{part} ({op_type}) of {name}")
            inner = numbers(operator.IntermediatesAsNumpy(), part)
            operators.append(Operator(op_type, inputs, outputs, options, inner))
        ends = [
            numbers(ports, "the list of ports") for ports in (graph.InputsAsNumpy(), graph.OutputsAsNumpy())
        ]
        if any(tensor < 0 for end in ends for tensor in end):
            raise self.error(f"a port of {name} is left out")
        return Subgraph(name, tensors, operators, ends[0], ends[1])

    def _tensor(self, tensor: Any, graph: str, index: int) -> Tensor:
        name = _text(tensor.Name()) or f"tensor{index}"
        location = f"tensor {name} of {graph}"
        type_name = _names("TensorType").get(tensor.Type())
        if type_name is None:
            raise LoadError(f"{self._subject}: {location} has type {tensor.Type()}, which is unknown")
        shape, signature = _integers(tensor.ShapeAsNumpy()), _integers(tensor.ShapeSignatureAsNumpy())
        if tensor.Sparsity() is not None:
            raise LoadError(
                f"{self._subject}: {location} is sparse, which is not supported; convert the model again, dense"
            )
        dims = signature if len(signature) == len(shape) else shape
        if len(dims) > MAX_TENSOR_AXES or any(size < -1 for size in dims) or any(size < 0 for size in shape):
            raise self.error(f"{location} has shape {list(shape)} {list(signature)}")
        data = self._value(tensor, type_name, shape, location)
        if data is not None:
            dims = shape
        sizes = None if tensor.ShapeIsNone() and data is None else dims
        return Tensor(
            name,
            type_name,
            sizes,
            self._quantization(tensor, shape, location),
            data,
            bool(tensor.IsVariable()),
        )

    def _value(self, tensor: Any, type_name: str, shape: tuple[int, ...], location: str) -> Array | None:
        buffer = tensor.Buffer()
        if buffer >= self._model.BuffersLength():
            raise self.error(f"{location} has buffer {buffer} of {self._model.BuffersLength()}")
        if buffer == 0:
            return None
        data = self._buffer_bytes(self._model.Buffers(buffer), location)
        if not data.size or type_name in RESOURCES:
            return None
        if type_name in ("INT4", "UINT4"):
            raise LoadError(
                f"{self._subject}: {location} has {type_name.lower()} weights, which are not supported"
            )
        dtype = TENSOR_TYPES.get(type_name)
        if dtype is None:
            return None
        size = math.prod(shape)
        if data.size != size * dtype.itemsize:
            raise self.error(
                f"{location} has {count_of(data.size, 'byte')} of data for shape {list(shape)}, which takes "
                f"{size * dtype.itemsize}"
            )
        if dtype == np.bool_:
            return (data != 0).reshape(shape)
        return data.view(dtype.newbyteorder("<")).astype(dtype).reshape(shape)

    def _buffer_bytes(self, buffer: Any, location: str) -> NDArray[np.uint8]:
        """Return the bytes of a buffer; in large files they follow the FlatBuffer."""
        offset, size = buffer.Offset(), buffer.Size()
        if offset > 1:
            if offset + size > len(self._data):
                raise self.error(f"{location} has its data at byte {offset}, after the end of the file")
            return np.frombuffer(self._data, np.uint8, size, offset).copy()
        return _array(buffer.DataAsNumpy(), np.uint8)

    def _quantization(self, tensor: Any, shape: tuple[int, ...], location: str) -> Quantization | None:
        table = tensor.Quantization()
        if table is None or not table.ScaleLength():
            return None
        scale, zero = _array(table.ScaleAsNumpy(), np.float32), _array(table.ZeroPointAsNumpy(), np.int64)
        zero = zero if zero.size else np.zeros(1, np.int64)
        axis = table.QuantizedDimension()
        if not ((scale > 1 / MAX_SCALE) & (scale < MAX_SCALE)).all() or (np.abs(zero) > 1 << 16).any():
            raise self.error(f"{location} has a scale or a zero point out of range")
        if scale.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scale.size):
            raise self.error(
                f"{location} has {count_of(scale.size, 'scale')} on axis {axis} of {list(shape)}"
            )
        if zero.size not in (1, scale.size):
            raise self.error(
                f"{location} has {count_of(scale.size, 'scale')} and {count_of(zero.size, 'zero point')}"
            )
        return Quantization(scale, zero, axis)

    def _options(self, operator: Any, location: str) -> Mapping[str, Any]:
        """Name of an option as the schema's accessors spell it -> its value: numbers, lists, text."""
        options_by_name: dict[str, Any] = {}
        for code, union, table in (
            (operator.BuiltinOptionsType(), "BuiltinOptions", operator.BuiltinOptions),
            (operator.BuiltinOptions2Type(), "BuiltinOptions2", operator.BuiltinOptions2),
        ):
            if code == 0:
                continue
            name, union_table = _names(union).get(code), table()
            if name is None:
                raise LoadError(f"{self._subject}: {location} has options {code}, which are unknown")
            if union_table is None:
                continue
            options = getattr(schema(), name)()
            options.Init(union_table.Bytes, union_table.Pos)
            options_by_name |= _fields(options)
        return options_by_name

    def _signature(self, signature: Any, graphs: Sequence[Subgraph]) -> SubgraphSignature:
        key, number = _text(signature.SignatureKey()), int(signature.SubgraphIndex())
        if number >= len(graphs):
            raise self.error(f"signature {key} is of subgraph {number}, and there are {len(graphs)}")
        graph = graphs[number]

        def read_names(length: int, entry: Callable[[int], Any], ports: tuple[int, ...]) -> dict[int, str]:
            maps = [entry(index) for index in range(length)]
            names = {int(pair.TensorIndex()): _text(pair.Name()) for pair in maps}
            if set(names) - set(ports) or len(set(names.values())) != len(names):
                raise self.error(f"signature {key} does not fit the ports of {graph.name}")
            return names

        return SubgraphSignature(
            key,
            number,
            read_names(signature.InputsLength(), signature.Inputs, graph.inputs),
            read_names(signature.OutputsLength(), signature.Outputs, graph.outputs),
        )


def _fields(options: Any) -> dict[str, Any]:
    """Return all fields of a table of options, by their accessors: numbers, text, and vectors as lists."""
    members = _members(type(options))
    fields: dict[str, Any] = {}
    for name, accessor in members.items():
        if name == "Init" or not hasattr(accessor, "__code__"):
            continue
        vector = name.endswith("AsNumpy")
        if accessor.__code__.co_argcount != 1 or (
            name.endswith(("IsNone", "Length")) and f"{name[:-6]}AsNumpy" in members
        ):
            continue
        if vector:
            fields[name.removesuffix("AsNumpy")] = list(_integers(getattr(options, name)()))
            continue
        value = getattr(options, name)()
        if isinstance(value, bytes):
            fields[name] = _text(value)
        elif isinstance(value, int | float):
            fields[name] = value
    return fields


def _members(enumeration: Any) -> dict[str, Any]:
    """Return the members of a class of the package, by name."""
    return dict(cast("Mapping[str, Any]", vars(enumeration)))
