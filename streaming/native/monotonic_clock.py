"""The system's clock for compiled code."""

import time

import numpy as np

from pulse.jit.language.address import address_of
from pulse.jit.language.foreign import c_function, c_signature
from pulse.jit.language.stack import stack_i64
from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.registry import device
from pulse.jit.rows.fields import words_of

MONOTONIC_CLOCK = int(getattr(time, "CLOCK_MONOTONIC", 1))
"""The clock of ``time.monotonic_ns`` on Linux and macOS."""


class Timespec(Struct):
    """A 64-bit ``timespec``."""

    seconds: int
    nanoseconds: int


timespec_at, TIMESPEC_WORDS = struct_at(Timespec), words_of(Timespec)

_clock_gettime = c_function("clock_gettime", c_signature("i32", "i32", "i64"))


@device
def monotonic_ns() -> int:
    """Return the nanoseconds of the clock of ``time.monotonic_ns``."""
    now = timespec_at(address_of(stack_i64(TIMESPEC_WORDS)))
    _clock_gettime(np.int32(MONOTONIC_CLOCK), address_of(now))
    return now.seconds * 1_000_000_000 + now.nanoseconds
