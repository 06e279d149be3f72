# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
"""Between a device and the function that takes its blocks: once it is shut, nobody gets through.

A device that was given up may come back, and its thread then calls where it called before. What it finds is the gate,
whose memory is kept for ever, not the memory of a pipeline that is gone or belongs to another device by now.
"""

import time

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from pulse.jit.address import address_of, bytes_at, words_at
from pulse.jit.entries import callback, entry
from pulse.jit.pointer_lowering import WORDS
from pulse.jit.raw import fill_bytes
from pulse.not_copyable import NotCopyable
from pulse.program.memory import aligned_bytes
from streaming.native.callback_signature import ABORT, CONTINUE, SIGNATURE
from streaming.native.primitives import load, store

# Python writes FUNCTION to SHUT, the device's thread the others, on a cache line of their own.
FUNCTION, USER, BYTES, SHUT = range(4)
ENTERED, LEFT, ANSWER = range(8, 11)
GATE_FIELDS = 16
POLL_S = 0.0005
GRACE_S = 0.05


@intrinsic
def _advance(typingctx, words, i):
    """``words[i] += 1``; nothing that comes later is done before it, not even a load."""

    def build(context, builder, sig, args):
        place = builder.gep(args[0], [args[1]], inbounds=True)
        builder.atomic_rmw("add", place, ir.IntType(64)(1), "seq_cst")
        return context.get_dummy_value()

    return types.none(WORDS, types.int64), build


@intrinsic
def _call(typingctx, function, source, target, frames, clock, flags, user):
    """Call the stream callback at an address."""

    def build(context, builder, sig, args):
        arguments = [value.type for value in args[1:]]
        pointer = ir.PointerType(ir.FunctionType(ir.IntType(32), arguments))
        return builder.call(builder.inttoptr(args[0], pointer), args[1:])

    signature = types.int32(types.int64, source, target, frames, clock, flags, types.int64)
    return signature, build


@callback("device.gate", SIGNATURE)
def stream_callback(source, target, frames, clock, flags, user):
    """What a device calls: goes through the gate, or gives silence and ends the stream."""
    words = words_at(address_of(user))
    _advance(words, ENTERED)
    if load(words, SHUT) == 0:
        answer = _call(words[FUNCTION], source, target, frames, clock, flags, words[USER])
        if answer != CONTINUE:
            words[ANSWER] = answer
    else:
        answer = types.int32(ABORT)
        if address_of(target) != 0:
            fill_bytes(bytes_at(address_of(target)), 0, types.int64(frames) * words[BYTES])
    store(words, LEFT, words[LEFT] + 1)
    return answer


@entry("device.shut", 1)
def shut(address):
    """Shut the gate at an address."""
    _advance(words_at(address), SHUT)


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
