"""The signature of PortAudio's stream callback: arguments, return values, flags."""

import ctypes
from ctypes import c_int, c_ulong, c_void_p

from pulse.jit.foreign import c_signature
from pulse.jit.structs import Struct, struct_at

CONTINUE, COMPLETE, ABORT = range(3)
"""What it answers: go on; end when all is played; end now."""
INPUT_UNDERFLOW, INPUT_OVERFLOW, OUTPUT_UNDERFLOW, OUTPUT_OVERFLOW = 1, 2, 4, 8
"""Flags."""
SIGNATURE = c_signature("i32", "address", "address", "u64", "address", "u64", "address")
"""Input, output, frames, time, flags, user data."""
FUNCTION = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_ulong, c_void_p, c_ulong, c_void_p)
"""The signature for ctypes."""


class CallbackTimes(Struct):
    """The time of a callback on the device's clock: when its first sample was captured, now, when one is played."""

    captured_s: float
    now_s: float
    played_s: float


times_at = struct_at(CallbackTimes)
