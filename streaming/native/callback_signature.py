"""The signature of PortAudio's stream callback: arguments, return values, flags."""

import ctypes
from ctypes import c_int, c_ulong, c_void_p

from pulse.jit.language.foreign import c_signature
from pulse.jit.language.structs import Struct, struct_at

CONTINUE, COMPLETE, ABORT = range(3)
"""The results of a callback: continue; end when everything is played; end now."""
INPUT_UNDERFLOW, INPUT_OVERFLOW, OUTPUT_UNDERFLOW, OUTPUT_OVERFLOW = 1, 2, 4, 8
"""The flags of a callback."""
SIGNATURE = c_signature("i32", "address", "address", "u64", "address", "u64", "address")
"""The signature for compiled code: input, output, frames, time, flags, user data."""
FUNCTION = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_ulong, c_void_p, c_ulong, c_void_p)
"""The signature for ctypes."""


class CallbackTimes(Struct):
    """The times of a callback on the device's clock: capture of its first sample, now, and playback of its output."""

    captured_s: float
    now_s: float
    played_s: float


times_at = struct_at(CallbackTimes)
