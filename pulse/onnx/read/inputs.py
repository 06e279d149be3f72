"""What an ONNX graph states of its inputs and of other wires."""

from collections.abc import Iterable, Mapping

from pulse.dim import SymbolScope, TDim
from pulse.errors import LoadError
from pulse.facts import DType
from pulse.infer.fact import InferenceFact
from pulse.infer.inputs import DeclaredInput, assume_sizes, named_dim
from pulse.onnx.proto import GraphProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto
from pulse.onnx.tensors import onnx_dtype


def declared_inputs(graph: GraphProto) -> list[DeclaredInput]:
    """Return the inputs of a graph without those that have a stored value.

    Raises LoadError: one is not a tensor, or of a type that is not supported
    """
    initializers = {tensor.name for tensor in graph.initializer}
    return [_declared_input(value) for value in graph.input if value.name not in initializers]


def _declared_input(value: ValueInfoProto) -> DeclaredInput:
    if not value.type.HasField("tensor_type"):
        raise LoadError(
            f"input {value.name}: only tensors are supported, not {value.type.WhichOneof('value')}"
        )
    tensor_type = value.type.tensor_type
    dims = tuple(_dim(dim) for dim in tensor_type.shape.dim) if tensor_type.HasField("shape") else None
    return DeclaredInput(value.name, _dtype(tensor_type, f"input {value.name}"), dims)


def _dim(dim: TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return dim.dim_param or None


def claimed_fact(value: ValueInfoProto) -> InferenceFact | None:
    """Return the fact that a file states of a wire other than an input, numeric sizes only; None without a type."""
    if not value.type.HasField("tensor_type"):
        return None
    tensor_type = value.type.tensor_type
    try:
        dtype = _dtype(tensor_type, value.name)
    except LoadError:  # a type that is not supported; the node that makes it is refused with a better reason
        return None
    if not tensor_type.HasField("shape"):
        return InferenceFact(dtype)
    sizes = (dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor_type.shape.dim)
    return InferenceFact(dtype, tuple(TDim.of(size) if size >= 0 else None for size in sizes))


def named_fact(value: ValueInfoProto, scope: SymbolScope) -> InferenceFact:
    """Return the file's names for sizes of a wire other than an input; sizes without names are unknown."""
    shape = value.type.tensor_type.shape
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        return InferenceFact()
    dims = tuple(named_dim(dim.dim_param, scope) if dim.dim_param else None for dim in shape.dim)
    assume_sizes(dims, scope)
    return InferenceFact(None, dims)


def frees_lengths(inputs: Iterable[DeclaredInput], shapes: Mapping[str, str]) -> bool:
    """Return whether the caller names sizes that the file fixes, so that other shapes in the file are stale."""
    return any(
        isinstance(dim, int) and not part.strip().isdigit()
        for declared in inputs
        if declared.name in shapes
        for dim, part in zip(declared.dims or (), shapes[declared.name].split(","))
    )


def _dtype(tensor_type: TypeProto.Tensor, subject: str) -> DType | None:
    """Return the type, None if the file leaves it open. Raises LoadError: it is not supported."""
    return (
        onnx_dtype(tensor_type.elem_type, subject) if tensor_type.elem_type != TensorProto.UNDEFINED else None
    )
