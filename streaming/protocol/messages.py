"""Text messages: JSON objects with a ``type``.

Messages count the frames of each port in the epoch. What their words mean, and where a count is kept:

- ``received``: read by the server from the socket (``OpenStream.received``)
- ``taken``: stepped by the server (``RemoteStream.stepped``)
- ``safe``: in a checkpoint that the store has (``saved`` in both sides)
- ``sent``: of an output, sent by the server (``Checkpoint.sent``)
- ``first``: the number of the first frame of a block, so also the count of frames before it

``resume`` is not a count: it is the name of the stream's checkpoints (``RemoteStream.resume_name``).
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, cast

from pulse.support.record import record
from pulse.support.report import parse_json
from pulse.support.value_types import describe_type, fits
from streaming.protocol import PROTOCOL_VERSION
from streaming.protocol.errors import ProtocolError

REQUESTS = ("flush", "reset", "ping", "stats", "confirm")
"""The types that a client may send after its hello."""
Message = dict[str, Any]


def read_message(text: str) -> Message:
    """Parse a message. Raises ProtocolError: it is not a JSON object with a type."""
    try:
        value: object = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(
            "message", f"not valid JSON: {error}", "send one JSON object per message"
        ) from None
    if not isinstance(value, dict):
        raise ProtocolError("message", "not a JSON object", 'send {"type": …}')
    message = cast("Message", value)
    if not isinstance(message.get("type"), str):
        raise ProtocolError("message", "a message without a type", 'send {"type": …}')
    return message


def read_confirmation(message: Message) -> tuple[int, tuple[int, ...]]:
    """Return the epoch and the frames of each input of a checkpoint. Raises ProtocolError: they are not counts."""
    epoch, safe = message.get("epoch"), message.get("safe")
    numbers = [epoch, *cast("list[object]", safe)] if isinstance(safe, list) else [None]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ProtocolError(
            "message", "an invalid confirmation", 'send "epoch" and "safe" of the acknowledgement'
        )
    first, *others = cast("list[int]", numbers)
    return first, tuple(others)


def write_message(message: Mapping[str, Any]) -> str:
    """Return the text of a message."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


@record
class Hello:
    """The first message of a client; None for fields that were left out.

    model    name of the model; by default the server's first
    rate     rate of the samples in Hz; by default the model's
    format   format of the samples
    block    samples sent at once, a hint
    outputs  names of the outputs to send; all by default
    token    token, if the server has tokens
    resume   the name of a stream to resume
    skip     samples that an Opus decoder skips at the start
    stream   the name of a new stream, given by another server of the fleet
    follows  whether the client connects to another server on request
    confirms  whether the client confirms checkpoints
    """

    model: str | None = None
    rate: int | None = None
    format: Literal["pcm16", "f32", "opus"] = "f32"
    block: int | None = None
    outputs: tuple[str, ...] | None = None
    token: str | None = None
    resume: str | None = None
    skip: int | None = None
    stream: str | None = None
    follows: bool = False
    confirms: bool = False

    @classmethod
    def of_message(cls, message: Message) -> "Hello":
        """Read a hello. Raises ProtocolError: a field is wrong."""
        if message["type"] != "hello":
            raise _hello_error(
                f"the first message has type {message['type']!r}", 'begin with {"type": "hello"}'
            )
        if message.get("version", PROTOCOL_VERSION) != PROTOCOL_VERSION:
            raise _hello_error(
                f"version {message['version']!r}", f"this server speaks version {PROTOCOL_VERSION}"
            )
        values: dict[str, Any] = {}
        for field in fields(cls):
            value = message.get(field.name)
            if value is None:
                continue
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if not fits(value, field.type):
                raise _hello_error(f"{field.name} {value!r}", f"give {describe_type(field.type)}")
            if type(value) is int and value < 1:
                raise _hello_error(f"{field.name} {value!r}", "give a positive integer")
            values[field.name] = tuple(message["outputs"]) if field.name == "outputs" else value
        return cls(**values)

    def as_message(self) -> Message:
        """Return the message of text."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        fields_given = {name: value for name, value in values.items() if value not in (None, False)}
        return {"type": "hello", "version": PROTOCOL_VERSION, **fields_given}


def _hello_error(problem: str, hint: str) -> ProtocolError:
    return ProtocolError("hello", f"hello: {problem}", hint)
