# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
"""Between a device and the function that takes its blocks: once it is shut, nobody gets through.

A device that was given up may come back, and its thread then calls where it called before. What it finds is the gate,
whose memory is kept for ever, not the memory of a pipeline that is gone or belongs to another device by now.
"""

import time

import numpy as np
from numpy.typing import NDArray

from pulse.jit.address import address_of, bytes_at, words_at
from pulse.jit.atomics import advance, load, store
from pulse.jit.entries import callback, entry
from pulse.jit.foreign import c_function_at, c_signature
from pulse.jit.raw import fill_bytes
from pulse.not_copyable import NotCopyable
from pulse.program.memory import aligned_bytes
from streaming.native.callback_signature import ABORT, CONTINUE, SIGNATURE

# Python writes FUNCTION to SHUT, the device's thread the others, on a cache line of their own.
FUNCTION, USER, BYTES, SHUT = range(4)
ENTERED, LEFT, ANSWER = range(8, 11)
GATE_FIELDS = 16
POLL_S = 0.0005
GRACE_S = 0.05


_call = c_function_at(c_signature("i32", "address", "address", "u64", "address", "u64", "i64"))
"""The stream callback at an address; its user data is one too."""


@callback("device.gate", SIGNATURE)
def stream_callback(source, target, frames, clock, flags, user):
    """What a device calls: goes through the gate, or gives silence and ends the stream."""
    words = words_at(address_of(user))
    advance(words, ENTERED)
    if load(words, SHUT) == 0:
        answer = _call(words[FUNCTION], source, target, frames, clock, flags, words[USER])
        if answer != CONTINUE:
            words[ANSWER] = answer
    else:
        answer = np.int32(ABORT)
        if address_of(target) != 0:
            fill_bytes(bytes_at(address_of(target)), 0, np.int64(frames) * words[BYTES])
    store(words, LEFT, words[LEFT] + 1)
    return answer


@entry("device.shut", 1)
def shut(address):
    """Shut the gate at an address."""
    advance(words_at(address), SHUT)


class Gate(NotCopyable):
    """The memory of a gate, whose address is the user data of a stream.

    function, user  addresses of a stream callback of PortAudio's form, and of its user data
    channels_out    float32 each; what silence is written to once the gate is shut
    """

    instead = "its address is with a device; make another one"

    def __init__(self, function: int, user: int, channels_out: int) -> None:
        self.words: NDArray[np.int64] = aligned_bytes(8 * GATE_FIELDS).view(np.int64)
        self.words[[FUNCTION, USER, BYTES]] = function, user, 4 * channels_out

    @property
    def address(self) -> int:
        """Of the words."""
        return self.words.ctypes.data

    @property
    def callbacks(self) -> int:
        """How often the device has called."""
        return int(self.words[LEFT])

    @property
    def ended(self) -> bool:
        """Whether the function has ended the stream."""
        return bool(self.words[ANSWER])

    def shut(self, limit_s: float) -> bool:
        """Let nobody in from now on; whether all who were inside have left, so that memory may be given back.

        limit_s  how long they may take; ``GRACE_S`` at least
        """
        shut.call(self.address)
        until = time.monotonic() + max(limit_s, GRACE_S)
        while self.words[ENTERED] != self.words[LEFT]:
            if time.monotonic() >= until:
                return False
            time.sleep(POLL_S)
        return True
