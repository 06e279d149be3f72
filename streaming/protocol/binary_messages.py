"""Binary messages: numbered frames of a port."""

from struct import Struct
from typing import NamedTuple

from pulse.support.wording import count_of
from streaming.protocol.errors import ProtocolError

HEADER = Struct("<BBHIQII")
"""kind, port, epoch, frames, first, queue_us, step_us"""
INPUT, OUTPUT, FINAL = 1, 2, 3
"""The kinds of messages with frames."""
EPOCH_MODULUS = 1 << 16
"""Epochs are counted up to here, then again from 0."""
_MAX_US = (1 << 32) - 1
"""Longer times are sent as this one."""


class Header(NamedTuple):
    """The header of a binary message, before the values.

    kind      INPUT, OUTPUT or FINAL
    port      the number of the port
    epoch     the number of resets so far, modulo 65536
    frames    the number of frames that follow
    first     the number of the first frame
    queue_us  how long the last pulse of an output waited for a thread
    step_us   how long that pulse's step took
    """

    kind: int
    port: int
    epoch: int
    frames: int
    first: int
    queue_us: int = 0
    step_us: int = 0


def pack_frames(header: Header, values: bytes) -> bytes:
    """Create a binary message."""
    kind, port, epoch, frames, first, queue_us, step_us = header
    return (
        HEADER.pack(kind, port, epoch, frames, first, min(queue_us, _MAX_US), min(step_us, _MAX_US)) + values
    )


def unpack_header(message: bytes) -> Header:
    """Read the header of a binary message. Raises ProtocolError: the message is too short."""
    if len(message) < HEADER.size:
        raise ProtocolError(
            "message",
            f"a binary message of {count_of(len(message), 'byte')}",
            f"begin each one with a header of {HEADER.size} bytes",
        )
    return Header(*HEADER.unpack_from(message))
