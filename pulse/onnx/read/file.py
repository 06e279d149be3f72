"""From a path, bytes or a ModelProto to a well-formed ModelProto."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.internal.wire_format import (
    WIRETYPE_LENGTH_DELIMITED,
    WIRETYPE_VARINT,
    UnpackTag,
)
from google.protobuf.message import DecodeError, Message

from pulse.errors import LoadError
from pulse.onnx.proto import ModelProto
from pulse.onnx.read.functions import inline
from pulse.onnx.read.unreadable_formats import unreadable_format
from pulse.support.file_bytes import HEAD_BYTES, MAX_MODEL_BYTES, file_bytes

ModelSource: TypeAlias = str | os.PathLike[str] | bytes | ModelProto

SIZE_ADVICE = (
    "an ONNX file has less than 2 GiB: export it with its weights in a separate file (external data)"
)


class FileSource(NamedTuple):
    """A model as read, and the folder of its file, which may have external data."""

    proto: ModelProto
    title: str
    folder: Path | None


def read_source(source: ModelSource) -> FileSource:
    """Return the model, without functions, all names in it text. Raises LoadError: it is not a readable ONNX model."""
    if isinstance(source, ModelProto):
        return FileSource(_check(source, "the model"), source.graph.name or "model", None)
    if isinstance(source, bytes):
        _require_likely(source[:HEAD_BYTES], "these bytes")
        proto = _decode(source, "these bytes")
        return FileSource(proto, proto.graph.name or "model", None)
    try:
        path = Path(os.fspath(source))
    except TypeError:
        raise LoadError(
            f"cannot load a {type(source).__name__}; give a path, the bytes of an ONNX file, or a ModelProto"
        ) from None
    data = file_bytes(path, MAX_MODEL_BYTES, SIZE_ADVICE, lambda head: _require_likely(head, str(path)))
    return FileSource(_decode(data, str(path)), path.stem, path.parent)


def _require_likely(head: bytes, subject: str) -> None:
    """Require that bytes begin like a ModelProto, with the key of one of its fields.

    Raises LoadError: they begin otherwise
    """
    if begins_model(head):
        return
    raise _not_a_model(subject, head, "not an ONNX model; give a file exported to ONNX")


def _not_a_model(subject: str, head: bytes, otherwise: str) -> LoadError:
    """Return an error that names the format that bytes look like; ``otherwise`` if they look like none."""
    likeness = unreadable_format(head)
    if likeness is None:
        return LoadError(f"{subject}: {otherwise}")
    return LoadError(f"{subject}: not an ONNX model, it looks like {likeness.contents}; {likeness.advice}")


def begins_model(head: bytes) -> bool:
    """Return whether the first bytes are those of a ModelProto: the key of one of its fields."""
    number, wire_type = UnpackTag(head[0]) if head and head[0] < 0x80 else (0, 0)
    field = ModelProto.DESCRIPTOR.fields_by_number.get(number)
    if field is None:
        return False
    is_integer = field.type in (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_INT32)
    return wire_type == (WIRETYPE_VARINT if is_integer else WIRETYPE_LENGTH_DELIMITED)


def _decode(data: bytes, subject: str) -> ModelProto:
    try:
        return _check(ModelProto.FromString(data), subject)
    except DecodeError:
        otherwise = "not an ONNX model, or truncated; export or download it again"
        raise _not_a_model(subject, data, otherwise) from None


def _check(proto: ModelProto, subject: str) -> ModelProto:
    if not proto.HasField("graph") or not proto.opset_import or not proto.graph.output:
        raise LoadError(f"{subject}: not an ONNX model (no graph with outputs); give a file exported to ONNX")
    for text in _find_broken_texts(proto):
        raise LoadError(
            f"{subject}: a name in it is not text ({text[:40]!r}); the file is damaged, get it again"
        )
    return inline(proto, subject)


def _find_broken_texts(message: Message) -> Iterator[bytes]:
    """Yield the texts of a message, nested ones included, that are not valid UTF-8."""
    ahead, field_types = [message], dict[FieldDescriptor, tuple[int, bool]]()
    while ahead:
        for field, value in ahead.pop().ListFields():
            if field not in field_types:
                field_types[field] = field.type, field.is_repeated
            field_type, is_repeated = field_types[field]
            if field_type == FieldDescriptor.TYPE_MESSAGE:
                ahead += value if is_repeated else (value,)
            elif field_type == FieldDescriptor.TYPE_STRING:
                for text in value if is_repeated else (value,):
                    if not isinstance(text, str):
                        yield text
