# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
"""Between a device and the function that takes its blocks: once it is shut, no call gets through.

A device that was given up may come back, and its thread then calls where it called before. What it finds is the gate,
whose memory is kept for ever, not the memory of a pipeline that is gone or belongs to another device by now.
"""

import time

import numpy as np

from pulse.jit.address import address_of, bytes_at
from pulse.jit.atomics import advance, load, store
from pulse.jit.entries import callback, entry
from pulse.jit.fields import starts_line
from pulse.jit.foreign import c_function_at, c_signature
from pulse.jit.raw import fill_bytes
from pulse.jit.structs import Struct, struct_at
from pulse.support.not_copyable import NotCopyable
from streaming.native.callback_signature import ABORT, CONTINUE, SIGNATURE

POLL_S = 0.0005
GRACE_S = 0.05


class GateFields(Struct):
    """What Python writes, then what the device's thread does."""

    function: int
    user: int
    frame_bytes: int
    shut: int
    entered: int = starts_line()
    left: int
    answer: int


gate_at = struct_at(GateFields)
_call = c_function_at(c_signature("i32", "address", "address", "u64", "address", "u64", "i64"))
"""The stream callback at an address; its user data is one too."""


@callback("device.gate", SIGNATURE)
def stream_callback(source, target, frames, clock, flags, user):
    """What a device calls: goes through the gate, or gives silence and ends the stream."""
    gate = gate_at(address_of(user))
    advance(gate, "entered")
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
    advance(gate_at(address), "shut")


class Gate(NotCopyable):
    """The memory of a gate, whose address is the user data of a stream.

    function, user  addresses of a stream callback of PortAudio's form, and of its user data
    channels_out    float32 each; what silence is written to once the gate is shut
    """

    why_not = "its address is with a device; make another one"

    def __init__(self, function: int, user: int, channels_out: int) -> None:
        self._fields = GateFields.new()
        self._fields.function, self._fields.user = function, user
        self._fields.frame_bytes = 4 * channels_out

    @property
    def address(self) -> int:
        """The address of the memory."""
        return self._fields.address

    @property
    def callbacks(self) -> int:
        """How often the device has called."""
        return self._fields.left

    @property
    def has_ended(self) -> bool:
        """Whether the function has ended the stream."""
        return bool(self._fields.answer)

    def shut(self, limit_s: float) -> bool:
        """Let no call in from now on; whether all that were inside have left, so that memory may be given back.

        limit_s  how long they may take; ``GRACE_S`` at least
        """
        shut.call(self.address)
        until = time.monotonic() + max(limit_s, GRACE_S)
        while self._fields.entered != self._fields.left:
            if time.monotonic() >= until:
                return False
            time.sleep(POLL_S)
        return True
