"""Types and shapes that a file states for the wires between its nodes."""

from collections.abc import Collection, Sequence

from pulse.dim import Symbol, SymbolScope, TDim
from pulse.facts import TypedFact
from pulse.onnx.proto import TensorShapeProto, ValueInfoProto
from pulse.onnx.read.inputs import named_dim
from pulse.onnx.tensors import onnx_dtype


def is_stated(value: ValueInfoProto | None) -> bool:
    """Whether the file has type and shape, with a size or a name for every axis."""
    if value is None or not value.type.HasField("tensor_type"):
        return False
    tensor = value.type.tensor_type
    has_sizes = all(dim.dim_param or dim.dim_value > 0 for dim in tensor.shape.dim)
    return bool(tensor.elem_type) and tensor.HasField("shape") and has_sizes


def stated_facts(
    values: Sequence[ValueInfoProto | None], scope: SymbolScope, symbols: Collection[Symbol], what: str
) -> list[TypedFact] | None:
    """The facts of wires; None if one is not stated in terms of the inputs' symbols. Raises LoadError."""
    facts: list[TypedFact] = []
    for value in values:
        if value is None or not is_stated(value):
            return None
        tensor = value.type.tensor_type
        shape = tuple(_size(dim, scope) for dim in tensor.shape.dim)
        if any(symbol not in symbols for size in shape for symbol in size.symbols):
            return None
        facts.append(TypedFact(onnx_dtype(tensor.elem_type, what), shape))
    return facts


def _size(dim: TensorShapeProto.Dimension, scope: SymbolScope) -> TDim:
    return named_dim(dim.dim_param, scope) if dim.dim_param else TDim.of(dim.dim_value)
