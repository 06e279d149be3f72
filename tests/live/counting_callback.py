"""A minimal stream callback, and the request that opens it."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pulse.jit.entries import callback
from pulse.jit.language.address import address_of, floats_at, words_at
from streaming.hosts.host import Endpoint, StreamRequest
from streaming.native.callback_signature import COMPLETE, CONTINUE, SIGNATURE

CALLS, FRAMES, FLAGS, CHANNELS_IN, CHANNELS_OUT, END_AT, TIMED = range(7)


def counters() -> NDArray[np.int64]:
    """Zeroed counters: the user data of the callback."""
    return np.zeros(8, np.int64)


@callback("test.count", SIGNATURE)
def count(source, target, frames, clock, flags, user):
    """Count; play the first channel of the input, or ones, on all channels; end after END_AT calls."""
    words = words_at(address_of(user))
    words[CALLS] += 1
    words[FRAMES] += frames
    words[FLAGS] |= flags
    words[TIMED] += address_of(clock) != 0
    if address_of(target) != 0:
        out, has_input = floats_at(address_of(target)), address_of(source) != 0
        samples = floats_at(address_of(source)) if has_input else out
        for frame in range(frames):
            value = samples[frame * words[CHANNELS_IN]] if has_input else np.float32(1)
            for channel in range(words[CHANNELS_OUT]):
                out[frame * words[CHANNELS_OUT] + channel] = value
    return COMPLETE if words[CALLS] == words[END_AT] else CONTINUE


def request(
    words: NDArray[np.int64],
    source: Endpoint | None,
    target: Endpoint | None,
    rate_hz: int = 48000,
    block_frames: int = 480,
    channels: int = 2,
    latency: str | float = "low",
    finished: Callable[[], None] = lambda: None,
) -> StreamRequest:
    """A request for a stream that counts in ``words``."""
    inputs, outputs = (channels if source else 0), (channels if target else 0)
    words[[CHANNELS_IN, CHANNELS_OUT]] = inputs, outputs
    return StreamRequest(
        count.address,
        words.ctypes.data,
        source,
        target,
        inputs,
        outputs,
        rate_hz,
        block_frames,
        latency,
        finished,
    )
