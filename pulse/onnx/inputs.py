"""The inputs of an ONNX graph: what the file says of their shapes, and what the caller says instead."""

from collections.abc import Mapping, Sequence

from onnx import GraphProto, TensorShapeProto, TypeProto, ValueInfoProto

from pulse.dim import SymbolScope, TDim, ge
from pulse.errors import DimError, LoadError, PulseError
from pulse.facts import DTYPES, DType, dtype_name
from pulse.model import InferenceFact
from pulse.onnx.tensors import onnx_dtype

Fixed = dict[str, TDim]


def input_facts(graph: GraphProto, given: Mapping[str, str], scope: SymbolScope) -> dict[str, InferenceFact]:
    """What is known of each input. Raises LoadError where ``given`` does not fit the file."""
    stored = {tensor.name for tensor in graph.initializer}
    values = {value.name: value for value in graph.input if value.name not in stored}
    unknown = sorted(set(given) - set(values))
    if unknown:
        raise LoadError(
            f"no input is called {', '.join(unknown)}; the inputs are {', '.join(values) or 'none'}"
        )
    fixed: Fixed = {}
    specs = {name: _Spec(name, text, values[name], scope) for name, text in given.items()}
    for spec in specs.values():
        spec.fix(fixed)
    facts = {
        name: specs[name].fact if name in specs else _declared(value, fixed, scope)
        for name, value in values.items()
    }
    for fact in facts.values():
        for dim in fact.shape or ():
            for symbol in () if dim is None else sorted(dim.symbols, key=str):
                scope.assume(ge(TDim.of(symbol), TDim.of(0)))
    return facts


def _tensor_type(value: ValueInfoProto) -> TypeProto.Tensor:
    if not value.type.HasField("tensor_type"):
        raise LoadError(f"input {value.name}: only tensors are covered, not {value.type.WhichOneof('value')}")
    return value.type.tensor_type


def _declared(value: ValueInfoProto, fixed: Fixed, scope: SymbolScope) -> InferenceFact:
    kind = _tensor_type(value)
    dtype = onnx_dtype(kind.elem_type, f"input {value.name}")
    if not kind.HasField("shape"):
        return InferenceFact(dtype)
    return InferenceFact(dtype, tuple(_dim(dim, fixed, scope) for dim in kind.shape.dim))


def _dim(dim: TensorShapeProto.Dimension, fixed: Fixed, scope: SymbolScope) -> TDim | None:
    if dim.HasField("dim_value"):
        return TDim.of(dim.dim_value) if dim.dim_value >= 0 else None
    if not dim.dim_param:
        return None
    return fixed.get(dim.dim_param, named_dim(dim.dim_param, scope))


def named_dim(name: str, scope: SymbolScope) -> TDim:
    """The dim of a name in a file: an expression where it reads as one, else a symbol of a cleaned name."""
    try:
        return scope.parse(name)
    except DimError:
        cleaned = "".join(letter if letter.isalnum() else "_" for letter in name)
        return TDim.of(scope.symbol(cleaned if not cleaned[:1].isdigit() else f"_{cleaned}"))


class _Spec:
    """What the caller says of one input."""

    def __init__(self, name: str, text: str, value: ValueInfoProto, scope: SymbolScope) -> None:
        kind = _tensor_type(value)
        self.name, self.text = name, text
        self.dims: Sequence[TensorShapeProto.Dimension] = kind.shape.dim if kind.HasField("shape") else ()
        dtype = onnx_dtype(kind.elem_type, f"input {name}")
        self.fact = InferenceFact(dtype, self._parse(dtype, scope))
        shape = self.fact.shape or ()
        if kind.HasField("shape") and len(self.dims) != len(shape):
            raise LoadError(f"input {name}: {text!r} has {len(shape)} dims, the file has {len(self.dims)}")

    def _parse(self, dtype: DType, scope: SymbolScope) -> tuple[TDim, ...]:
        parts = [part.strip() for part in self.text.split(",")] if self.text.strip() else []
        if parts and parts[-1] in DTYPES:
            wanted = DTYPES[parts.pop()]
            if wanted != dtype:
                raise LoadError(
                    f"input {self.name}: {self.text!r} asks for {dtype_name(wanted)}, "
                    f"the file has {dtype_name(dtype)}"
                )
        try:
            dims = tuple(scope.parse(part) for part in parts)
        except PulseError as error:
            raise LoadError(
                f"input {self.name}: {self.text!r} is not a shape such as '1,80,T,f32': {error}"
            ) from error
        if any(dim.is_const and int(dim) < 0 for dim in dims):
            raise LoadError(f"input {self.name}: {self.text!r} has a negative dim; give it a name such as T")
        return dims

    def fix(self, fixed: Fixed) -> None:
        """Learn what the caller's dims make of the file's names. Raises LoadError where they contradict."""
        for axis, (declared, dim) in enumerate(zip(self.dims, self.fact.shape or ())):
            assert dim is not None
            if declared.HasField("dim_value"):
                if dim.is_const and declared.dim_value >= 0 and int(dim) != declared.dim_value:
                    raise LoadError(
                        f"input {self.name}: {self.text!r} gives axis {axis} as {dim}, "
                        f"the file fixes it to {declared.dim_value}"
                    )
            elif declared.dim_param and fixed.setdefault(declared.dim_param, dim) != dim:
                raise LoadError(
                    f"inputs: {declared.dim_param} is given as {fixed[declared.dim_param]} and as {dim} "
                    f"({self.name}: {self.text!r})"
                )
