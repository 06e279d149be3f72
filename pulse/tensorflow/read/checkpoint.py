"""Checkpoints: a sorted table of entries in ``.index``, and the bytes of tensors in ``.data-00000-of-00001``.

The table consists of blocks. A block lists keys and values, each key without its common prefix with the previous one,
then restart points, which are not needed here. The last 48 bytes have the place of the block that lists the others.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from pulse.errors import LoadError, file_errors
from pulse.facts import Array
from pulse.support.wording import count_of
from pulse.tensorflow.messages import BundleEntryProto, BundleHeaderProto, Proto
from pulse.tensorflow.tensors import STRING, TensorType, dims_of

_FOOTER_BYTES = 48
"""The bytes of the footer at the end of an index."""
_MAGIC = 0xDB4775248B80FB57
"""The last eight bytes of an index."""
_TRAILER_BYTES = 5
"""Bytes after a block: how it is compressed, and a checksum."""
_CHECKSUM_BYTES = 4
"""Bytes of the checksum between the length of a text and the text."""


class _Handle(NamedTuple):
    offset: int
    size: int


class CheckpointTensors:
    """The tensors of a checkpoint, by key.

    prefix   the path without ``.index``
    Raises   LoadError: it cannot be read, or is damaged or big-endian
    """

    def __init__(self, prefix: Path) -> None:
        self._prefix = prefix
        self._path = prefix.with_name(f"{prefix.name}.index")
        with file_errors(self._path, "read", LoadError):
            self._data = self._path.read_bytes()
        self._entries: dict[str, bytes] = {}
        self._read_entries()
        header = self._message(BundleHeaderProto, self._entries.pop("", b""))
        self._shards = max(1, header.num_shards)
        if header.endianness:
            raise self._damage_error("its numbers are big-endian, which is not supported")

    def keys(self) -> list[str]:
        """Return the names of the tensors."""
        return list(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def _damage_error(self, damage: str) -> LoadError:
        return LoadError(
            f"{self._path}: {damage}; the checkpoint is damaged or of another kind, get it again"
        )

    def _message(self, message_class: Proto, data: bytes) -> Any:
        try:
            return message_class.FromString(data)
        except DecodeError:
            raise self._damage_error("an entry cannot be decoded") from None

    def _read_entries(self) -> None:
        if len(self._data) < _FOOTER_BYTES or int.from_bytes(self._data[-8:], "little") != _MAGIC:
            raise self._damage_error("it is not a table of tensors")
        footer = self._data[-_FOOTER_BYTES:-8]
        _, position = self._read_handle(footer, 0)
        index, _ = self._read_handle(footer, position)
        for _, value in self._block(index):
            handle, _ = self._read_handle(value, 0)
            for key, entry in self._block(handle):
                try:
                    self._entries[key.decode()] = entry
                except UnicodeDecodeError:
                    raise self._damage_error("a name in it is not text") from None

    def _varint(self, data: bytes, position: int) -> tuple[int, int]:
        value = shift = 0
        while position < len(data) and shift < 64:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position
            shift += 7
        raise self._damage_error("a number in it does not end")

    def _read_handle(self, data: bytes, position: int) -> tuple[_Handle, int]:
        offset, position = self._varint(data, position)
        size, position = self._varint(data, position)
        return _Handle(offset, size), position

    def _block(self, handle: _Handle) -> Iterator[tuple[bytes, bytes]]:
        end = handle.offset + handle.size
        if end + _TRAILER_BYTES > len(self._data):
            raise self._damage_error("a block is outside it")
        if self._data[end] != 0:
            raise self._damage_error("a block is compressed, which is not supported")
        block = self._data[handle.offset : end]
        if len(block) < 4:
            raise self._damage_error("a block is too short")
        stop = len(block) - 4 - 4 * int.from_bytes(block[-4:], "little")
        position, key = 0, b""
        while position < stop:
            shared, position = self._varint(block, position)
            fresh, position = self._varint(block, position)
            length, position = self._varint(block, position)
            if shared > len(key) or position + fresh + length > stop:
                raise self._damage_error("an entry is outside its block")
            key = key[:shared] + block[position : position + fresh]
            yield key, block[position + fresh : position + fresh + length]
            position += fresh + length

    def tensor(self, key: str) -> Array:
        """Return a tensor of numbers. Raises LoadError: it is missing or damaged."""
        entry = self._entry(key)
        type_, dims = TensorType(entry.dtype), dims_of(entry.shape)
        dtype = type_.known_type
        if dtype is None:
            raise LoadError(f"{self._path}, {key}: a tensor of {type_} is not supported")
        if dims is None or None in dims:
            raise self._damage_error(f"{key} has no shape")
        shape = tuple(dim for dim in dims if dim is not None)
        if math.prod(shape) * dtype.itemsize != entry.size:
            raise self._damage_error(
                f"{key} has {count_of(entry.size, 'byte')} for shape {list(shape)} of {dtype}"
            )
        data = self._bytes(self._shard(entry, key), entry.offset, entry.size)
        return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype).reshape(shape)

    def text(self, key: str) -> bytes:
        """Return a tensor of one text: its length, a checksum, its bytes.

        Raises LoadError: it is missing or damaged.
        """
        entry = self._entry(key)
        data = self._bytes(self._shard(entry, key), entry.offset, entry.size)
        length, position = self._varint(data, 0)
        if entry.dtype != STRING or entry.shape.dim or position + _CHECKSUM_BYTES + length != len(data):
            raise self._damage_error(f"{key} is not text of {count_of(entry.size, 'byte')}")
        return data[position + _CHECKSUM_BYTES :]

    def _entry(self, key: str) -> Any:
        if key not in self._entries:
            raise LoadError(f"{self._path}: has no tensor {key!r}; the checkpoint belongs to another model")
        return self._message(BundleEntryProto, self._entries[key])

    def _shard(self, entry: Any, key: str) -> int:
        if not 0 <= entry.shard_id < self._shards:
            raise self._damage_error(f"{key} is in file {entry.shard_id} of {self._shards}")
        return entry.shard_id

    def _bytes(self, shard: int, offset: int, size: int) -> bytes:
        path = self._prefix.with_name(f"{self._prefix.name}.data-{shard:05d}-of-{self._shards:05d}")
        folder = self._prefix.parent.resolve()
        with file_errors(path, "read", LoadError, "the SavedModel is not whole"):
            if path.resolve().parent != folder:
                raise LoadError(f"{path}: is outside the model's folder; copy the file into it")
            with path.open("rb") as file:
                length = path.stat().st_size
                if offset < 0 or offset + size > length:
                    raise self._damage_error(
                        f"{path.name} has {count_of(length, 'byte')}, and a tensor is at {offset}"
                    )
                file.seek(offset)
                return file.read(size)
