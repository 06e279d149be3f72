"""Tensors stored in ONNX files, and data beside them."""

from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

from pulse.errors import LoadError
from pulse.facts import DTYPES, Array, DType

_KNOWN = frozenset(DTYPES.values())


def onnx_dtype(code: int, what: str) -> DType:
    """The numpy type of an ONNX element type. Raises LoadError where it is not covered."""
    try:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(code))
    except KeyError:
        raise LoadError(f"{what}: unknown element type {code}") from None
    if dtype not in _KNOWN or code == TensorProto.STRING:
        raise LoadError(f"{what}: element type {TensorProto.DataType.Name(code)} is not covered")
    return dtype


def tensor_value(tensor: TensorProto, folder: Path | None, what: str) -> Array:
    """The array of a stored tensor; outside data only from the model's own folder. Raises LoadError."""
    dtype = onnx_dtype(tensor.data_type, what)
    if tensor.data_location == TensorProto.EXTERNAL:
        _check_external(tensor, folder, what)
    try:
        value: Any = numpy_helper.to_array(tensor, str(folder) if folder else "")
        return np.asarray(value, dtype=dtype)
    except (ValueError, TypeError, OSError, checker.ValidationError) as error:
        raise LoadError(f"{what}: its data cannot be read ({error}); export the model again") from error


def _check_external(tensor: TensorProto, folder: Path | None, what: str) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise LoadError(
            f"{what}: its data is in {location!r} outside of the model; load the model from its path"
        )
    path = (folder / location).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise LoadError(
            f"{what}: its data {location!r} lies outside of the model's folder; move it beside the model"
        )
    if not path.is_file():
        raise LoadError(f"{what}: its data file {location!r} is missing; put it beside the model")
