"""Entries of a file's metadata, found without reading the rest of it: weights are skipped."""

import os
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from google.protobuf.internal.wire_format import (
    WIRETYPE_FIXED32,
    WIRETYPE_FIXED64,
    WIRETYPE_LENGTH_DELIMITED,
    WIRETYPE_VARINT,
    UnpackTag,
)
from google.protobuf.message import DecodeError

from pulse.onnx.proto import ModelProto, StringStringEntryProto
from pulse.onnx.read.file import begins_model

if TYPE_CHECKING:
    from pulse.onnx.read.file import ModelSource

_MAX_VARINT_BYTES = 10
"""Maximum number of bytes of a number; a file with more is not protobuf."""
_HEAD_BYTES = 16
"""The bytes from which a model is recognised."""
_MAX_FIELDS = 1 << 14
"""Maximum number of fields that are read, more than functions and entries; a file of zeros has a field per byte."""


def metadata_of(proto: ModelProto) -> dict[str, str]:
    """Return the entries of a model by their keys."""
    return {entry.key: entry.value for entry in proto.metadata_props}


def stored_values(source: "ModelSource", key: str) -> list[Any]:
    """Return the values of all entries with a key: text, or bytes if it is not valid UTF-8.

    Empty for other or damaged files: ``pulse.load`` reports their errors.
    """
    if isinstance(source, ModelProto):
        return [entry.value for entry in source.metadata_props if entry.key == key]
    try:
        if isinstance(source, bytes):
            return _find(BytesIO(source), len(source), key)
        path = Path(os.fspath(source))
        if not path.is_file():
            return []
        with path.open("rb") as file:
            return _find(file, os.fstat(file.fileno()).st_size, key)
    except (OSError, TypeError, ValueError):
        return []


def _find(file: BinaryIO, size: int, key: str) -> list[Any]:
    if not begins_model(file.read(_HEAD_BYTES)):
        return []
    file.seek(0)
    values: list[Any] = []
    for _ in range(_MAX_FIELDS):
        tag = _varint(file)
        if not tag:
            break
        number, wire_type = UnpackTag(tag)
        if wire_type == WIRETYPE_VARINT:
            _varint(file)
            continue
        length = {WIRETYPE_FIXED32: 4, WIRETYPE_FIXED64: 8}.get(wire_type)
        if wire_type == WIRETYPE_LENGTH_DELIMITED:
            length = _varint(file)
        if length is None or length > size - file.tell():
            break
        if number == ModelProto.METADATA_PROPS_FIELD_NUMBER and wire_type == WIRETYPE_LENGTH_DELIMITED:
            try:
                entry = StringStringEntryProto.FromString(file.read(length))
            except DecodeError:
                continue
            if entry.key == key:
                values.append(entry.value)
        else:
            file.seek(length, os.SEEK_CUR)
    return values


def _varint(file: BinaryIO) -> int | None:
    """Return the next number; None at the end of the file, or if there is none."""
    number = 0
    for index in range(_MAX_VARINT_BYTES):
        byte = file.read(1)
        if not byte:
            return None
        number |= (byte[0] & 0x7F) << 7 * index
        if byte[0] < 0x80:
            return number
    return None
