"""Broken ONNX files, by number: bytes and messages of good files changed at random."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto

from tests.pulse.cases.families import cases

Random = np.random.Generator
Source = tuple[str, bytes]

FAMILIES = (
    "attention conv elementwise matmul norm pool recurrent reduce resize scan search shape slice spectral"
)
EACH = 30
"""Seeds of each family, about."""

MAX_FILE_BYTES = 1 << 20
"""Maximum size of a mutated file."""

INTEGERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    255,
    1 << 20,
    1 << 31,
    (1 << 31) - 1,
    -(1 << 31),
    1 << 40,
    (1 << 63) - 1,
    -(1 << 63),
)
FLOATS = (0.0, -1.0, 1e-40, 3.4e38, float("nan"), float("inf"), float("-inf"))
TEXTS = (
    "",
    "x",
    "y",
    "T",
    "a\0b",
    "line\nline",
    "n" * 100_000,
    "☃é",
    "../../etc/passwd",
    "-1",
    "T-1",
    "(",
    "%s{}",
)


def small_models() -> list[Source]:
    """Models of the case generators that have a stream, as many of each family, of all kinds in it."""
    sources: list[Source] = []
    for family in FAMILIES.split():
        streams = [(name, model) for name, model, _ in cases(family) if name.endswith("-T")]
        chosen = streams[:: max(1, len(streams) // EACH)]
        sources += [(name, model.SerializeToString()) for name, model in chosen]
    return sources


def models_in(folder: Path) -> list[Source]:
    """The files of a folder, except large ones, of which most is weights."""
    paths = sorted(path for path in folder.glob("*.onnx") if path.stat().st_size < MAX_FILE_BYTES)
    return [(path.stem, path.read_bytes()) for path in paths]


def flip_bits(data: bytes, rng: Random) -> bytes:
    """Flip a few bits."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(data: bytes, rng: Random) -> bytes:
    """Cut off the end."""
    return data[: int(rng.integers(len(data)))]


def move_bytes(data: bytes, rng: Random) -> bytes:
    """Some bytes put in, taken out, or repeated."""
    start, stop = sorted(int(place) for place in rng.integers(0, len(data), 2))
    stop = min(stop, start + 16)
    new = (rng.bytes(stop - start), b"", data[start:stop] * 2)[int(rng.integers(3))]
    return data[:start] + new + data[stop:]


def change_messages(data: bytes, rng: Random, kind: Any = ModelProto) -> bytes:
    """Messages of the file changed: fields set, dropped, swapped, repeated, taken from elsewhere."""
    model = kind.FromString(data)
    for _ in range(int(rng.integers(1, 4))):
        messages = list(_messages_of(model))
        message = messages[int(rng.integers(len(messages)))]
        fields = [field for field, _ in message.ListFields()]
        if fields and rng.random() < 0.8:
            field = fields[int(rng.integers(len(fields)))]
        else:
            every = list(message.DESCRIPTOR.fields)
            field = every[int(rng.integers(len(every)))]
        _change(message, field, messages, rng)
    return model.SerializeToString()


def _messages_of(message: Message) -> list[Message]:
    messages = [message]
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in value if field.is_repeated else [value]:
                messages += _messages_of(inner)
    return messages


def _change(message: Message, field: FieldDescriptor, others: Sequence[Message], rng: Random) -> None:
    if field.is_repeated:
        _change_list(getattr(message, field.name), field, others, rng)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        same = [other for other in others if other.DESCRIPTOR is field.message_type]
        if same and rng.random() < 0.6:
            copy = same[int(rng.integers(len(same)))].SerializeToString()
            getattr(message, field.name).ParseFromString(copy)
        else:
            message.ClearField(field.name)
    elif rng.random() < 0.15:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _value(field, others, rng))


def _change_list(values: Any, field: FieldDescriptor, others: Sequence[Message], rng: Random) -> None:
    choice, count = int(rng.integers(5)), len(values)
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        same = [other for other in others if other.DESCRIPTOR is field.message_type]
        if choice == 0 and count:
            del values[int(rng.integers(count))]
        elif choice == 1 and count > 1:
            order = rng.permutation(count)
            copies = [values[int(place)].SerializeToString() for place in order]
            for value, copy in zip(values, copies):
                value.ParseFromString(copy)
        elif same and choice < 4:
            values.add().ParseFromString(same[int(rng.integers(len(same)))].SerializeToString())
        else:
            values.add()
    elif choice == 0 and count:
        del values[int(rng.integers(count))]
    elif choice == 1 and count > 1:
        values[:] = [values[int(place)] for place in rng.permutation(count)]
    elif choice < 4 and count:
        values[int(rng.integers(count))] = _value(field, others, rng)
    else:
        values.extend([_value(field, others, rng)] * int(rng.choice([1, 1, 2, 40])))


def _value(field: FieldDescriptor, others: Sequence[Message], rng: Random) -> Any:
    kind = field.type
    if kind == FieldDescriptor.TYPE_STRING:
        return _text(others, rng)
    if kind == FieldDescriptor.TYPE_BYTES:
        return _text(others, rng).encode() if rng.random() < 0.5 else rng.bytes(int(rng.integers(64)))
    if kind in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return float(rng.choice(FLOATS))
    if kind == FieldDescriptor.TYPE_ENUM:
        return int(rng.choice([value.number for value in field.enum_type.values]))
    number = INTEGERS[int(rng.integers(len(INTEGERS)))]
    if kind == FieldDescriptor.TYPE_INT32:
        return int(np.clip(number, -(1 << 31), (1 << 31) - 1))
    if kind in (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32):
        return int(np.clip(number, 0, (1 << 32) - 1))
    return max(0, number) if kind == FieldDescriptor.TYPE_UINT64 else number


def _text(others: Sequence[Message], rng: Random) -> str:
    """A strange text, or one that stands elsewhere in the file."""
    if rng.random() < 0.4:
        return TEXTS[int(rng.integers(len(TEXTS)))]
    texts = [
        text
        for other in others
        for field, value in other.ListFields()
        if field.type == FieldDescriptor.TYPE_STRING
        for text in (value if field.is_repeated else [value])
    ]
    return texts[int(rng.integers(len(texts)))] if texts else ""


MUTATIONS: tuple[Callable[[bytes, Random], bytes], ...] = (
    flip_bits,
    cut,
    move_bytes,
    *(change_messages,) * 5,
)


def mutated_file(number: int, seeds: Sequence[Source]) -> Source:
    """The file of a number, and how it came about."""
    rng = np.random.default_rng(number)
    name, data = seeds[int(rng.integers(len(seeds)))]
    mutate = MUTATIONS[int(rng.integers(len(MUTATIONS)))]
    return f"{number}: {name} {mutate.__name__}", mutate(data, rng)
