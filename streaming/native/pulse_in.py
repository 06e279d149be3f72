# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""What a pulse is made of: frames of the ring of input, in the slots of the streams."""

from pulse.program.kernels.address import floats_at, words_at
from pulse.program.kernels.pointer import Pointer
from pulse.program.kernels.registry import device
from streaming.native import line_words as w
from streaming.native.mixing import channel_of
from streaming.native.primitives import load, store
from streaming.native.resample import feed, missing, produce, ready


@device
def stream_at(words: Pointer, number: int) -> Pointer:
    """The words of a stream, those of its first input."""
    return words_at(words[w.STREAM]) + number * words[w.INPUTS] * w.STREAM_WORDS


@device
def gather(words: Pointer, stream: Pointer, target: Pointer, frames: int) -> None:
    """The samples of one input of a stream, of the next frames in the ring, which lie in one piece there."""
    channels = words[w.IN_CHANNELS]
    place = words[w.IN_READ] & (words[w.IN_FRAMES] - 1)
    channel_of(target, floats_at(words[w.IN_RING]) + place * channels, channels, stream[w.CHANNEL], frames)


@device
def fill_slots(words: Pointer) -> bool:
    """Take from the ring what the next pulse needs, no frame more; whether it is there."""
    pulse, filled, inputs = words[w.PULSE], words[w.FILLED], words[w.STREAMS] * words[w.INPUTS]
    first = words_at(words[w.STREAM])
    scratch = floats_at(words[w.SCRATCH])
    while filled < pulse:
        read = words[w.IN_READ]
        waiting = load(words, w.IN_WRITTEN) - read
        piece = min(waiting, words[w.LARGEST], words[w.IN_FRAMES] - (read & (words[w.IN_FRAMES] - 1)))
        if first[w.IN_RESAMPLER] == 0:
            piece = made = min(piece, pulse - filled)
            for s in range(inputs):
                stream = first + s * w.STREAM_WORDS
                gather(words, stream, floats_at(stream[w.SLOT_IN]) + filled, piece)
        else:
            piece = min(piece, missing(words_at(first[w.IN_RESAMPLER]), pulse - filled))
            made = 0
            for s in range(inputs):
                stream = first + s * w.STREAM_WORDS
                resampler = words_at(stream[w.IN_RESAMPLER])
                if piece > 0:
                    gather(words, stream, scratch, piece)
                    feed(resampler, scratch, 1, piece)
                made = min(ready(resampler), pulse - filled)
                produce(resampler, floats_at(stream[w.SLOT_IN]) + filled, 1, made)
        filled += made
        words[w.FILLED] = filled
        store(words, w.IN_READ, read + piece)
        if piece == 0 and made == 0:
            break
    return filled >= pulse


@device
def arrival_of(words: Pointer, fallback_ns: int) -> int:
    """When the last frame that was taken from the ring arrived."""
    mark, written, count = words[w.MARKS_READ], load(words, w.MARKS_WRITTEN), words[w.MARK_COUNT]
    arrived = fallback_ns
    while mark < written:
        place = words_at(words[w.MARKS]) + 2 * (mark & (count - 1))
        if place[0] >= words[w.IN_READ]:
            arrived = place[1]
            break
        mark += 1
    store(words, w.MARKS_READ, mark)
    return arrived
