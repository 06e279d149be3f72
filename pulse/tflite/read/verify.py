"""Verification of the offsets of a FlatBuffer against its schema.

The accessors of the ``tflite`` package follow every offset of a file. So each table, vector and text of the schema is
checked first: its place, its size, and the places of its fields. In a tree of tables with shared parts, each part is
checked for each use; the total must not be longer than the file.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pulse.errors import LoadError
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.tflite.recognition import IDENTIFIER, is_tflite

MAX_SCALAR_BYTES = 8
"""The size of the widest scalar in bytes."""


@record
class VectorLayout:
    """A vector of scalars of a size in bytes, or of tables."""

    of: "int | str"


@record
class Union:
    """A table of any kind: what its fields are is not checked here."""


FieldLayout: TypeAlias = "str | VectorLayout | Union"
"""``text``, the name of a table, a vector or a union; scalars have none."""

TEXT = "text"
I8, I32, I64 = VectorLayout(1), VectorLayout(4), VectorLayout(8)

SCHEMA: Mapping[str, Mapping[int, FieldLayout]] = {
    "Model": {
        1: VectorLayout("OperatorCode"),
        2: VectorLayout("SubGraph"),
        3: TEXT,
        4: VectorLayout("Buffer"),
        5: I32,
        7: VectorLayout("SignatureDef"),
    },
    "OperatorCode": {1: TEXT},
    "SubGraph": {0: VectorLayout("Tensor"), 1: I32, 2: I32, 3: VectorLayout("Operator"), 4: TEXT},
    "Tensor": {
        0: I32,
        3: TEXT,
        4: "QuantizationParameters",
        6: "SparsityParameters",
        7: I32,
        9: VectorLayout("VariantSubType"),
    },
    "QuantizationParameters": {0: I32, 1: I32, 2: I32, 3: I64, 5: Union()},
    "SparsityParameters": {},
    "VariantSubType": {},
    "Operator": {1: I32, 2: I32, 4: Union(), 5: I8, 7: I8, 8: I32, 12: Union()},
    "Buffer": {0: I8},
    "SignatureDef": {0: VectorLayout("TensorMap"), 1: VectorLayout("TensorMap"), 2: TEXT},
    "TensorMap": {0: TEXT},
}
"""Table -> number of a field -> the target of its offset. Source: TensorFlow Lite schema, version 3."""


def check_offsets(data: bytes, subject: str) -> None:
    """Follow every offset of a model. Raises LoadError: one leads outside the file or nowhere."""
    if not is_tflite(data):
        raise LoadError(
            f"{subject}: not a TFLite model (no {IDENTIFIER.decode()} at byte 4); give a .tflite file"
        )
    walk = _Walk(data, subject)
    walk.table(walk.indirect(0, "the root"), "Model")


@dataclass
class _Walk:
    data: bytes
    subject: str
    visited: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    left: int = 0

    def __post_init__(self) -> None:
        self.left = len(self.data)

    def error(self, part: str, reason: str) -> LoadError:
        return LoadError(f"{self.subject}: {part} {reason}; the file is damaged, get it again")

    def number(self, struct_format: str, byte: int, part: str) -> int:
        size = struct.calcsize(struct_format)
        if not 0 <= byte <= len(self.data) - size:
            raise self.error(part, f"lies at byte {byte} of {len(self.data)}")
        return struct.unpack_from(struct_format, self.data, byte)[0]

    def indirect(self, byte: int, part: str) -> int:
        """Return the position that an offset leads to."""
        offset = self.number("<I", byte, part)
        if offset == 0:
            raise self.error(part, "has an offset of 0")
        return byte + offset

    def table(self, byte: int, table_type: str) -> None:
        if (byte, table_type) in self.visited:
            return
        self.visited.add((byte, table_type))
        there = self.fields(byte, table_type)
        for field_id, inner in SCHEMA[table_type].items():
            if field_id in there:
                self.follow(there[field_id], inner, f"field {field_id} of {table_type} at byte {byte}")

    def fields(self, byte: int, table_type: str) -> dict[int, int]:
        """Return the position of each field that a table has, all of them inside the file."""
        part = f"table {table_type} at byte {byte}"
        vtable = byte - self.number("<i", byte, part)
        size, length = self.number("<H", vtable, part), self.number("<H", vtable + 2, part)
        if size < 4 or size % 2 or length < 4 or byte + length > len(self.data):
            raise self.error(
                part, f"has a vtable of {count_of(size, 'byte')} and {count_of(length, 'byte')} of fields"
            )
        bytes_by_field: dict[int, int] = {}
        for field_id in range((size - 4) // 2):
            offset = self.number("<H", vtable + 4 + 2 * field_id, part)
            if offset and not 4 <= offset < length:
                raise self.error(part, f"has field {field_id} at byte {offset} of {length}")
            if offset:
                bytes_by_field[field_id] = byte + offset
        return bytes_by_field

    def follow(self, byte: int, layout: FieldLayout, part: str) -> None:
        target = self.indirect(byte, part)
        if isinstance(layout, Union):
            if any(
                offset + MAX_SCALAR_BYTES > len(self.data)
                for offset in self.fields(target, "options").values()
            ):
                raise self.error(part, "extends beyond the end of the file")
        elif layout == TEXT:
            self.vector(target, 1, part)
        elif isinstance(layout, VectorLayout):
            count = self.vector(target, layout.of if isinstance(layout.of, int) else 4, part)
            if isinstance(layout.of, str):
                self.left -= 4 * count
                if self.left < 0:
                    raise self.error(part, "shares its parts more often than the length of the file allows")
                for index in range(count):
                    self.table(self.indirect(target + 4 + 4 * index, f"{part}[{index}]"), layout.of)
        else:
            self.table(target, layout)

    def vector(self, byte: int, size: int, part: str) -> int:
        count = self.number("<I", byte, part)
        if byte + 4 + count * size > len(self.data):
            raise self.error(part, f"has {count_of(count, 'entry', 'entries')}, more than the file holds")
        return count
