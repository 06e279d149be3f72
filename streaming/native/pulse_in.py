# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""Fills the slots of the streams with the next pulse, from the ring of input."""

from pulse.jit.address import floats_at, words_at
from pulse.jit.atomics import load, store
from pulse.jit.pointer import Pointer
from pulse.jit.registry import device
from streaming.native import control_block as cb
from streaming.native.mixing import channel_of
from streaming.native.resample import feed, missing, produce, ready


@device
def stream_at(control: Pointer, number: int) -> Pointer:
    """The control block of a stream, that of its first input."""
    return words_at(control[cb.STREAM]) + number * control[cb.INPUTS] * cb.STREAM_FIELDS


@device
def gather(control: Pointer, stream: Pointer, target: Pointer, frames: int) -> None:
    """The samples of one input of a stream, of the next frames in the ring, which lie in one piece there."""
    channels = control[cb.IN_CHANNELS]
    place = control[cb.IN_READ] & (control[cb.IN_FRAMES] - 1)
    channel_of(
        target, floats_at(control[cb.IN_RING]) + place * channels, channels, stream[cb.CHANNEL], frames
    )


@device
def fill_slots(control: Pointer) -> bool:
    """Take from the ring what the next pulse needs, no frame more; whether it is there."""
    pulse, filled, inputs = control[cb.PULSE], control[cb.FILLED], control[cb.STREAMS] * control[cb.INPUTS]
    first = words_at(control[cb.STREAM])
    scratch = floats_at(control[cb.SCRATCH])
    while filled < pulse:
        read = control[cb.IN_READ]
        waiting = load(control, cb.IN_WRITTEN) - read
        piece = min(
            waiting, control[cb.LARGEST], control[cb.IN_FRAMES] - (read & (control[cb.IN_FRAMES] - 1))
        )
        if first[cb.IN_RESAMPLER] == 0:
            piece = made = min(piece, pulse - filled)
            for s in range(inputs):
                stream = first + s * cb.STREAM_FIELDS
                gather(control, stream, floats_at(stream[cb.SLOT_IN]) + filled, piece)
        else:
            piece = min(piece, missing(words_at(first[cb.IN_RESAMPLER]), pulse - filled))
            made = 0
            for s in range(inputs):
                stream = first + s * cb.STREAM_FIELDS
                resampler = words_at(stream[cb.IN_RESAMPLER])
                if piece > 0:
                    gather(control, stream, scratch, piece)
                    feed(resampler, scratch, 1, piece)
                made = min(ready(resampler), pulse - filled)
                produce(resampler, floats_at(stream[cb.SLOT_IN]) + filled, 1, made)
        filled += made
        control[cb.FILLED] = filled
        store(control, cb.IN_READ, read + piece)
        if piece == 0 and made == 0:
            break
    return filled >= pulse


@device
def arrival_of(control: Pointer, fallback_ns: int) -> int:
    """When the last frame that was taken from the ring arrived."""
    mark, written, count = control[cb.MARKS_READ], load(control, cb.MARKS_WRITTEN), control[cb.MARK_COUNT]
    arrived = fallback_ns
    while mark < written:
        place = words_at(control[cb.MARKS]) + 2 * (mark & (count - 1))
        if place[0] >= control[cb.IN_READ]:
            arrived = place[1]
            break
        mark += 1
    store(control, cb.MARKS_READ, mark)
    return arrived
