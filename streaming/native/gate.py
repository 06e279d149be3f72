# pyright: basic, reportArgumentType=false, reportCallIssue=false
"""A gate between a device and the function that processes its blocks: when shut, it lets no call through.

An abandoned device may resume, and its thread then makes the same call as before. It calls the gate, whose memory is
never freed, and not the memory of a pipeline that is gone or belongs to another device.
"""

import time

import numpy as np

from pulse.jit.entries import callback, entry
from pulse.jit.language.address import address_of, bytes_at
from pulse.jit.language.atomics import increment, load, store
from pulse.jit.language.foreign import c_function_at, c_signature
from pulse.jit.language.raw import fill_bytes
from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.rows.fields import starts_line
from pulse.support.not_copyable import NotCopyable
from streaming.native.callback_signature import ABORT, CONTINUE, SIGNATURE

POLL_S = 0.0005
"""Seconds between two looks at the calls inside."""
MIN_SHUT_TIMEOUT_S = 0.05
"""``shut`` waits at least this long for calls inside."""


class GateBlock(Struct):
    """The fields that Python writes, then those of the device's thread."""

    function: int
    user: int
    frame_bytes: int
    shut: int
    entered: int = starts_line()
    left: int
    answer: int


gate_at = struct_at(GateBlock)
_call = c_function_at(c_signature("i32", "address", "address", "u64", "address", "u64", "i64"))
"""The stream callback at an address; its user data is one too."""


@callback("device.gate", SIGNATURE)
def stream_callback(source, target, frames, clock, flags, user):
    """Call the function through the gate; if it is shut, write silence and end the stream."""
    gate = gate_at(address_of(user))
    increment(gate, "entered")
    if load(gate, "shut") == 0:
        answer = _call(gate.function, source, target, frames, clock, flags, gate.user)
        if answer != CONTINUE:
            gate.answer = answer
    else:
        answer = np.int32(ABORT)
        if address_of(target) != 0:
            fill_bytes(bytes_at(address_of(target)), 0, np.int64(frames) * gate.frame_bytes)
    store(gate, "left", gate.left + 1)
    return answer


@entry("device.shut", 1)
def shut(address):
    """Shut the gate at an address."""
    increment(gate_at(address), "shut")


class Gate(NotCopyable, reason="its address is with a device; make another one"):
    """The memory of a gate, whose address is the user data of a stream.

    function, user  addresses of a stream callback of PortAudio's form, and of its user data
    channels_out    the float32 output channels, to which silence is written when the gate is shut
    """

    def __init__(self, function: int, user: int, channels_out: int) -> None:
        self._fields = GateBlock.new()
        self._fields.function, self._fields.user = function, user
        self._fields.frame_bytes = 4 * channels_out

    @property
    def address(self) -> int:
        """The address of the memory."""
        return self._fields.address

    @property
    def callbacks(self) -> int:
        """The number of calls by the device."""
        return self._fields.left

    @property
    def has_ended(self) -> bool:
        """Whether the function has ended the stream."""
        return bool(self._fields.answer)

    def shut(self, limit_s: float) -> bool:
        """Refuse further calls; return whether all calls inside have ended, so that memory may be freed.

        limit_s  the time to wait for them; at least ``MIN_SHUT_TIMEOUT_S``
        """
        shut.call(self.address)
        until = time.monotonic() + max(limit_s, MIN_SHUT_TIMEOUT_S)
        while self._fields.entered != self._fields.left:
            if time.monotonic() >= until:
                return False
            time.sleep(POLL_S)
        return True
