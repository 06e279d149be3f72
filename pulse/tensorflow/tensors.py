"""Tensors, types and shapes as TensorFlow stores them."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from pulse.errors import LoadError
from pulse.facts import BOOL, F32, F64, I32, I64, U8, Array, DType
from pulse.support.budget import current_spending
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.tensorflow.messages import Proto

_TYPES: dict[int, tuple[DType, str]] = {
    1: (F32, "float_val"),
    2: (F64, "double_val"),
    3: (I32, "int_val"),
    4: (U8, "int_val"),
    5: (np.dtype(np.int16), "int_val"),
    6: (np.dtype(np.int8), "int_val"),
    8: (np.dtype(np.complex64), "scomplex_val"),
    9: (I64, "int64_val"),
    10: (BOOL, "bool_val"),
    17: (np.dtype(np.uint16), "int_val"),
    18: (np.dtype(np.complex128), "dcomplex_val"),
    19: (np.dtype(np.float16), "half_val"),
    22: (np.dtype(np.uint32), "uint32_val"),
    23: (np.dtype(np.uint64), "uint64_val"),
}
"""TensorFlow's number of a type -> the type, and the field of a tensor that lists values of it."""
_UNSUPPORTED_TYPES = {7: "string", 14: "bfloat16", 20: "resource", 21: "variant"}
_REFERENCE_OFFSET = 100
"""The offset of a reference type's number from the number of its type."""
STRING, RESOURCE = 7, 20
MAX_ELEMENTS = 1 << 31
"""Maximum number of elements of a tensor; more are refused."""

KnownSizes: TypeAlias = "tuple[int | None, ...] | None"
"""Sizes, with None for unknown ones; None for a shape of unknown rank."""


@record
class TensorType:
    """A type by TensorFlow's number."""

    number: int

    @property
    def base_number(self) -> int:
        """The number of the base type, which is not a reference."""
        return self.number - _REFERENCE_OFFSET if self.number > _REFERENCE_OFFSET else self.number

    @property
    def known_type(self) -> DType | None:
        """The type of the elements; None if they are not numbers."""
        known = _TYPES.get(self.base_number)
        return known and known[0]

    @property
    def is_complex(self) -> bool:
        """Whether elements have two parts."""
        return self.base_number in (8, 18)

    def __str__(self) -> str:
        dtype = self.known_type
        return (
            _UNSUPPORTED_TYPES.get(self.base_number, f"type {self.number}") if dtype is None else dtype.name
        )


class FunctionName(NamedTuple):
    """A function of the library, as an attribute names it."""

    name: str
    attributes: Mapping[str, Any]


def dims_of(shape: Proto) -> KnownSizes:
    """Return a TensorShapeProto; sizes below 0 are unknown."""
    if shape.unknown_rank:
        return None
    return tuple(dim.size if dim.size >= 0 else None for dim in shape.dim)


def dims_in(value: object) -> KnownSizes:
    """Return the sizes of an attribute, if it is a shape of known rank."""
    if isinstance(value, tuple) and not isinstance(value, FunctionName):
        return cast("KnownSizes", value)
    return None


def tensor_value(proto: Proto, location: str) -> Array:
    """Return a TensorProto; a list that is shorter than the tensor repeats its last element.

    Raises LoadError: it is damaged, too large, or of a type that is not supported
    """
    type_ = TensorType(proto.dtype)
    dtype = type_.known_type
    if dtype is None:
        raise LoadError(f"{location}: a tensor of {type_} is not supported")
    dims = dims_of(proto.tensor_shape)
    if dims is None or None in dims:
        raise LoadError(f"{location}: a tensor without a shape; the file is damaged, export it again")
    shape = tuple(dim for dim in dims if dim is not None)
    size = math.prod(shape)
    if size > MAX_ELEMENTS:
        raise LoadError(
            f"{location}: a tensor of {count_of(size, 'element')}; the file is damaged, export it again"
        )
    if proto.tensor_content:
        if len(proto.tensor_content) != size * dtype.itemsize:
            raise LoadError(
                f"{location}: {count_of(len(proto.tensor_content), 'byte')} for {count_of(size, 'element')} of "
                f"{dtype}; "
                "the file is damaged, export it again"
            )
        return np.frombuffer(proto.tensor_content, dtype.newbyteorder("<")).astype(dtype).reshape(shape)
    values = _read_list(proto, type_, dtype, location)
    if len(values) > size:
        raise LoadError(
            f"{location}: {count_of(len(values), 'value')} for {count_of(size, 'element')}; the file is damaged, "
            "export it again"
        )
    if len(values) < size:
        reason = current_spending().try_elements(size)
        if reason:
            raise LoadError(f"{location}: one value for {count_of(size, 'element')}: {reason}")
        last = values[-1] if len(values) else dtype.type(0)
        values = np.concatenate([values, np.full(size - len(values), last, dtype)])
    return values.reshape(shape)


def _read_list(proto: Proto, type_: TensorType, dtype: DType, location: str) -> Array:
    """Return the values that are listed one by one, in their type."""
    _, name_of_list = _TYPES[type_.base_number]
    raw: Any = getattr(proto, name_of_list)
    if type_.is_complex:
        parts = np.array(raw, np.float64).reshape(-1, 2)
        return (parts[:, 0] + 1j * parts[:, 1]).astype(dtype)
    numbers: Array = np.array(raw, np.int64 if dtype.kind in "iub" and type_.base_number != 23 else None)
    if type_.base_number == 19:
        return numbers.astype(np.uint16).view(np.float16)
    if numbers.size and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if int(numbers.min()) < limits.min or int(numbers.max()) > limits.max:
            raise LoadError(f"{location}: a value does not fit {dtype}; the file is damaged, export it again")
    return numbers.astype(dtype)
