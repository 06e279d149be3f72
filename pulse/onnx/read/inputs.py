"""The inputs of an ONNX graph: shapes from the file, and those that the caller overrides."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from pulse.dim import SymbolScope, TDim, ge
from pulse.errors import DimError, LoadError, PulseError
from pulse.facts import DTYPES, Array, DType, convert_numbers, dtype_name
from pulse.infer.fact import InferenceFact
from pulse.onnx.proto import GraphProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto
from pulse.onnx.tensors import onnx_dtype

Fixed = dict[str, TDim]


def check_given(inputs: Any, constants: Any) -> None:
    """Require the caller's inputs and constants by name.

    Raises LoadError: they are not mappings, or a shape is not text
    """
    shapes = cast("Mapping[str, Any]", inputs) if isinstance(inputs, Mapping) else None
    if inputs and (shapes is None or not all(isinstance(text, str) for text in shapes.values())):
        raise LoadError(f'inputs must map names to shapes, such as {{"x": "1,80,T,f32"}}, not {inputs!r}')
    if constants is not None and not isinstance(constants, Mapping):
        raise LoadError(f'constants must map names to values, such as {{"sr": 16000}}, not {constants!r}')


def input_facts(
    graph: GraphProto,
    shapes: Mapping[str, str],
    scope: SymbolScope,
    constants: Mapping[str, Any] | None = None,
) -> dict[str, InferenceFact]:
    """Return the fact of each input, with its value if ``constants`` has one.

    Raises LoadError: ``shapes`` or ``constants`` does not fit the file.
    """
    initializers = {tensor.name for tensor in graph.initializer}
    values = {value.name: value for value in graph.input if value.name not in initializers}
    unknown = sorted({*shapes, *(constants or {})} - set(values))
    if unknown:
        raise LoadError(
            f"no input is called {', '.join(unknown)}; the inputs are {', '.join(values) or 'none'}"
        )
    fixed: Fixed = {}
    arrays = {name: _constant(values[name], value) for name, value in (constants or {}).items()}
    shapes = {**shapes, **{name: ",".join(map(str, array.shape)) for name, array in arrays.items()}}
    specs = {name: _Spec(name, text, values[name], scope) for name, text in shapes.items()}
    for spec in specs.values():
        spec.fix(fixed)
    declared = {
        name: specs[name].fact if name in specs else _declare(values[name], fixed, scope)
        for name in sorted(values, key=lambda name: _has_expression(values[name]))
    }
    facts = {name: declared[name] for name in values}
    facts |= {name: replace(facts[name], value=array) for name, array in arrays.items()}
    for fact in facts.values():
        _assume_sizes(fact.shape or (), scope)
    return facts


def _has_expression(value: ValueInfoProto) -> bool:
    """Return whether a size is not a name: it may be an expression of the names of other inputs, ``32*T``."""
    return any(dim.dim_param and not dim.dim_param.isidentifier() for dim in value.type.tensor_type.shape.dim)


def _assume_sizes(dims: Sequence[TDim | None], scope: SymbolScope) -> None:
    """Assume that no symbol of a size is negative."""
    for dim in dims:
        for symbol in () if dim is None else sorted(dim.symbols, key=str):
            scope.assume(ge(TDim.of(symbol), TDim.of(0)))


def _tensor_type(value: ValueInfoProto) -> TypeProto.Tensor:
    if not value.type.HasField("tensor_type"):
        raise LoadError(
            f"input {value.name}: only tensors are supported, not {value.type.WhichOneof('value')}"
        )
    return value.type.tensor_type


def _constant(value: ValueInfoProto, source: Any) -> Array:
    """Return the constant value of an input: an array of its type; a single number fills the array."""
    tensor_type = _tensor_type(value)
    dtype = onnx_dtype(tensor_type.elem_type, f"input {value.name}")
    cast = convert_numbers(source, dtype)
    if cast is None:
        raise LoadError(
            f"constant {value.name}: {source!r} is not of type {dtype_name(dtype)}; give a number, a list or an array"
        )
    dims = tensor_type.shape.dim if tensor_type.HasField("shape") else ()
    if cast.ndim == 0 and all(dim.dim_value > 0 for dim in dims):
        return np.full([dim.dim_value for dim in dims], cast)
    return cast


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
    _assume_sizes(dims, scope)
    return InferenceFact(None, dims)


def frees_lengths(graph: GraphProto, shapes: Mapping[str, str]) -> bool:
    """Return whether the caller names sizes that the file fixes, so that other shapes in the file are stale."""
    fixed = {value.name: value.type.tensor_type.shape.dim for value in graph.input if value.name in shapes}
    return any(
        dim.HasField("dim_value") and dim.dim_value >= 0 and not part.strip().isdigit()
        for name, dims in fixed.items()
        for dim, part in zip(dims, shapes[name].split(","))
    )


def _dtype(tensor_type: TypeProto.Tensor, subject: str) -> DType | None:
    """Return the type, None if the file leaves it open. Raises LoadError: it is not supported."""
    return (
        onnx_dtype(tensor_type.elem_type, subject) if tensor_type.elem_type != TensorProto.UNDEFINED else None
    )


def _declare(value: ValueInfoProto, fixed: Fixed, scope: SymbolScope) -> InferenceFact:
    tensor_type = _tensor_type(value)
    dtype = _dtype(tensor_type, f"input {value.name}")
    if not tensor_type.HasField("shape"):
        return InferenceFact(dtype)
    return InferenceFact(dtype, tuple(_dim(dim, fixed, scope) for dim in tensor_type.shape.dim))


def _dim(dim: TensorShapeProto.Dimension, fixed: Fixed, scope: SymbolScope) -> TDim | None:
    if dim.HasField("dim_value"):
        return TDim.of(dim.dim_value) if dim.dim_value >= 0 else None
    if not dim.dim_param:
        return None
    return fixed.get(dim.dim_param, named_dim(dim.dim_param, scope))


def named_dim(name: str, scope: SymbolScope) -> TDim:
    """Return the dim of a name in a file: an expression if all names in it are known symbols, otherwise a new symbol.

    So ``time-axis`` is one symbol, and ``T-1`` is a difference if the file has T before it.
    """
    try:
        with scope.trial():
            names = {symbol.name for symbol in scope.parse(name).symbols}
        if all(part == name or scope.knows(part) for part in names):
            return scope.parse(name)
    except DimError:
        pass
    cleaned = "".join(letter if letter.isalnum() else "_" for letter in name)
    return TDim.of(scope.symbol(cleaned if not cleaned[:1].isdigit() else f"_{cleaned}"))


class _Spec:
    """The caller's shape of one input."""

    def __init__(self, name: str, text: str, value: ValueInfoProto, scope: SymbolScope) -> None:
        tensor_type = _tensor_type(value)
        self.name, self.text = name, text
        self.dims: Sequence[TensorShapeProto.Dimension] = (
            tensor_type.shape.dim if tensor_type.HasField("shape") else ()
        )
        self.fact = self._parse(_dtype(tensor_type, f"input {name}"), scope)
        shape = self.fact.shape or ()
        if tensor_type.HasField("shape") and len(self.dims) != len(shape):
            raise LoadError(
                f"input {name}: {text!r} has {len(shape)} dims; give {len(self.dims)}, as in the file"
            )

    def _parse(self, dtype: DType | None, scope: SymbolScope) -> InferenceFact:
        parts = [part.strip() for part in self.text.split(",")] if self.text.strip() else []
        if parts and parts[-1] in DTYPES:
            own_dtype = DTYPES[parts.pop()]
            if dtype is not None and own_dtype != dtype:
                raise LoadError(
                    f"input {self.name}: {self.text!r} asks for {dtype_name(own_dtype)}, "
                    f"the file has {dtype_name(dtype)}"
                )
            dtype = own_dtype
        try:
            dims = tuple(scope.parse(part) for part in parts)
        except PulseError as error:
            raise LoadError(
                f"input {self.name}: {self.text!r} is not a shape such as '1,80,T,f32': {error}"
            ) from error
        if any(dim.is_const and int(dim) < 0 for dim in dims):
            raise LoadError(f"input {self.name}: {self.text!r} has a negative dim; give it a name such as T")
        return InferenceFact(dtype, dims)

    def fix(self, fixed: Fixed) -> None:
        """Match the caller's dims with the file's names. Raises LoadError: they contradict."""
        for axis, (file_dim, dim) in enumerate(zip(self.dims, self.fact.shape or ())):
            assert dim is not None
            if file_dim.HasField("dim_value"):
                if dim.is_const and file_dim.dim_value >= 0 and int(dim) != file_dim.dim_value:
                    raise LoadError(
                        f"input {self.name}: {self.text!r} has axis {axis} as {dim}, "
                        f"the file fixes it to {file_dim.dim_value}"
                    )
            elif file_dim.dim_param and fixed.setdefault(file_dim.dim_param, dim) != dim:
                raise LoadError(
                    f"inputs: {file_dim.dim_param} is given as {fixed[file_dim.dim_param]} and as {dim} "
                    f"({self.name}: {self.text!r})"
                )
