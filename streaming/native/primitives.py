# pyright: basic, reportArgumentType=false, reportCallIssue=false
"""The system's clock and events for compiled code."""

import time

import numpy as np

from pulse.jit.address import address_of
from pulse.jit.fields import words_of
from pulse.jit.foreign import c_function, c_signature
from pulse.jit.registry import device
from pulse.jit.stack import stack_i64
from pulse.jit.structs import Struct, struct_at
from pulse.program.packed import count_at

MONOTONIC = int(getattr(time, "CLOCK_MONOTONIC", 1))
"""The clock of ``time.monotonic_ns`` on Linux and macOS."""
EVENT_BYTES = 8


class Moment(Struct):
    """A ``timespec`` of 64 bits."""

    seconds: int
    nanoseconds: int


moment_at, MOMENT_WORDS = struct_at(Moment), words_of(Moment)

_clock_gettime = c_function("clock_gettime", c_signature("i32", "i32", "i64"))
_read = c_function("read", c_signature("i64", "i32", "i64", "i64"))
_write = c_function("write", c_signature("i64", "i32", "i64", "i64"))


@device
def monotonic_ns() -> int:
    """Nanoseconds of the clock of ``time.monotonic_ns``."""
    now = moment_at(address_of(stack_i64(MOMENT_WORDS)))
    _clock_gettime(np.int32(MONOTONIC), address_of(now))
    return now.seconds * 1_000_000_000 + now.nanoseconds


@device
def wait_event(fd: int) -> None:
    """Wait until the event of a descriptor to read is set, and clear it; a signal may end it earlier."""
    _read(np.int32(fd), address_of(stack_i64(1)), EVENT_BYTES)


@device
def set_event(fd: int) -> None:
    """Set the event of a descriptor to write; never waits."""
    one = count_at(address_of(stack_i64(1)))
    one.count = 1
    _write(np.int32(fd), address_of(one), EVENT_BYTES)
