"""Tensors in ONNX files, and their external data."""

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from pulse.errors import LoadError
from pulse.facts import DTYPES, Array, DType, dtype_name
from pulse.onnx.proto import TensorProto
from pulse.support.wording import count_of

_FIELDS = {
    "f16": (TensorProto.FLOAT16, "int32_data"),
    "f32": (TensorProto.FLOAT, "float_data"),
    "f64": (TensorProto.DOUBLE, "double_data"),
    "i8": (TensorProto.INT8, "int32_data"),
    "i16": (TensorProto.INT16, "int32_data"),
    "i32": (TensorProto.INT32, "int32_data"),
    "i64": (TensorProto.INT64, "int64_data"),
    "u8": (TensorProto.UINT8, "int32_data"),
    "u16": (TensorProto.UINT16, "int32_data"),
    "u32": (TensorProto.UINT32, "uint64_data"),
    "u64": (TensorProto.UINT64, "uint64_data"),
    "bool": (TensorProto.BOOL, "int32_data"),
}
"""Type -> its ONNX element type, and the field that holds numbers of it if they are not raw bytes."""
_SUPPORTED_TYPES = {int(code): DTYPES[name] for name, (code, _) in _FIELDS.items()}
_CODES = {dtype: code for code, dtype in _SUPPORTED_TYPES.items()}

_WIDE = {"i": np.int64, "u": np.uint64, "b": np.int32}
"""The dtypes in which numbers of each kind are read, as they may exceed the range of their own."""


def element_type(dtype: DType) -> int:
    """Return the ONNX element type of a numpy type."""
    return _CODES[dtype]


def onnx_dtype(code: int, subject: str) -> DType:
    """Return the numpy type of an ONNX element type. Raises LoadError: it is not supported."""
    if code in _SUPPORTED_TYPES:
        return _SUPPORTED_TYPES[code]
    if code not in TensorProto.DataType.values():
        raise LoadError(f"{subject}: unknown element type {code}")
    raise LoadError(f"{subject}: element type {TensorProto.DataType.Name(code)} is not supported")


def tensor_value(tensor: TensorProto, folder: Path | None, subject: str) -> Array:
    """Return the array of a stored tensor; outside data only from the model's own folder.

    Raises LoadError: its data is missing, damaged or elsewhere.
    """
    dtype = onnx_dtype(tensor.data_type, subject)
    if any(size < 0 for size in tensor.dims):
        raise LoadError(f"{subject}: its shape {list(tensor.dims)} is negative; export the model again")
    if tensor.data_location == TensorProto.EXTERNAL:
        return _external_array(tensor, dtype, folder, subject)
    try:
        return _embedded_array(tensor, dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise LoadError(f"{subject}: its data cannot be read ({error}); export the model again") from error


def _embedded_array(tensor: TensorProto, dtype: DType) -> Array:
    """Return the array of a tensor whose data is in the file.

    Raises ValueError, TypeError, OverflowError: it is a segment, or its data does not fit its type and shape
    """
    if tensor.HasField("segment"):
        raise ValueError("it is a segment of a tensor")
    shape = tuple(tensor.dims)
    if tensor.HasField("raw_data"):
        raw = np.frombuffer(tensor.raw_data, dtype.newbyteorder("<"))
        return raw.reshape(shape).astype(dtype, copy=False)
    elements: Any = getattr(tensor, _FIELDS[dtype_name(dtype)][1])
    if dtype == np.float16:
        return np.array(elements, np.int32).astype(np.uint16).view(dtype).reshape(shape)
    return np.array(elements, _WIDE.get(dtype.kind, dtype)).astype(dtype).reshape(shape)


def _external_array(tensor: TensorProto, dtype: DType, folder: Path | None, subject: str) -> Array:
    """Return the array of a tensor whose data is in a file next to the model: ``length`` bytes from ``offset`` on."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise LoadError(
            f"{subject}: its data is in {location!r} outside the model; load the model from its path"
        )
    path = _external_path(folder, location, subject)
    size = math.prod(tensor.dims) * dtype.itemsize
    offset, length = _number(entries, "offset", 0, subject), _number(entries, "length", size, subject)
    if length != size:
        raise LoadError(
            f"{subject}: {count_of(length, 'byte')} of data for shape {list(tensor.dims)}, which takes {size}; "
            "export the model again"
        )
    with path.open("rb") as file:
        nbytes = os.fstat(file.fileno()).st_size
        if offset + size > nbytes:
            raise LoadError(
                f"{subject}: bytes {offset} to {offset + size} of {location!r}, which has {nbytes}; "
                "get the file again, it may be truncated or belong to another model"
            )
        file.seek(offset)
        data = file.read(size)
    array = np.frombuffer(data, dtype.newbyteorder("<")).reshape(tuple(tensor.dims))
    return array.astype(dtype, copy=False)


def _external_path(folder: Path, location: str, subject: str) -> Path:
    """Return the path of a data file, links followed, which must be a regular file in the model's folder."""
    try:
        path = Path(os.path.realpath(folder / location))
    except ValueError as error:
        raise LoadError(f"{subject}: its data file {location!r} is not a path ({error})") from error
    if not path.is_relative_to(os.path.realpath(folder)):
        raise LoadError(
            f"{subject}: its data {location!r} is outside the model's folder; move it into that folder"
        )
    if not os.path.lexists(path):
        raise LoadError(f"{subject}: its data file {location!r} is missing; put it into the model's folder")
    if not path.is_file():
        raise LoadError(
            f"{subject}: its data {location!r} is not a regular file; put the data file into the model's folder"
        )
    return path


def _number(entries: dict[str, str], key: str, default: int, subject: str) -> int:
    text = entries.get(key, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise LoadError(
            f"{subject}: the {key} of its data, {text[:40]!r}, is not a number of bytes; export it again"
        )
    return int(text)
