# pyright: reportMissingTypeStubs=false
"""The signature of PortAudio's stream callback: arguments, return values, flags."""

import ctypes
from ctypes import c_int, c_ulong, c_void_p
from typing import Any

from numba.core import types

CONTINUE, COMPLETE, ABORT = range(3)
"""What it answers: go on; end when all is played; end now."""
INPUT_UNDERFLOW, INPUT_OVERFLOW, OUTPUT_UNDERFLOW, OUTPUT_OVERFLOW = 1, 2, 4, 8
"""Flags."""
SIGNATURE: Any = types.int32(
    types.voidptr, types.voidptr, types.uint64, types.voidptr, types.uint64, types.voidptr
)
"""Input, output, frames, time, flags, user data."""
FUNCTION = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_ulong, c_void_p, c_ulong, c_void_p)
"""The same to ctypes."""
