"""A stream that plays a recording once, on all of its channels, then silence, as the input of a live run."""

import numpy as np
from numpy.typing import NDArray

from pulse.jit.entries import callback
from pulse.jit.language.address import address_of, floats_at, words_at
from streaming.hosts.host import Endpoint, StreamRequest
from streaming.native.callback_signature import CONTINUE, SIGNATURE

SOUND, FRAMES, PLACE, CHANNELS, RUNNING = range(5)


@callback("test.play", SIGNATURE)
def play(source, target, frames, clock, flags, user):
    """The next frames of the sound, once RUNNING is set."""
    words, out = words_at(address_of(user)), floats_at(address_of(target))
    sound = floats_at(words[SOUND])
    for frame in range(frames):
        value = np.float32(0)
        if words[RUNNING] != 0 and words[PLACE] < words[FRAMES]:
            value = sound[words[PLACE]]
            words[PLACE] += 1
        for channel in range(words[CHANNELS]):
            out[frame * words[CHANNELS] + channel] = value
    return CONTINUE


class Cassette:
    """The memory of a recording that ``play`` plays; ``request`` opens a stream of it."""

    def __init__(self, sound: NDArray[np.float32], channels: int = 1) -> None:
        self.sound = np.ascontiguousarray(sound, np.float32)
        self.words: NDArray[np.int64] = np.array(
            [self.sound.ctypes.data, len(sound), 0, channels, 0], np.int64
        )

    def request(self, target: Endpoint, rate_hz: int, block_frames: int) -> StreamRequest:
        """The request for a stream on a device."""
        return StreamRequest(
            play.address,
            self.words.ctypes.data,
            None,
            target,
            0,
            int(self.words[CHANNELS]),
            rate_hz,
            block_frames,
            "low",
            lambda: None,
        )

    def begin(self) -> None:
        """Let the recording run."""
        self.words[RUNNING] = 1
