"""Fill the slots of the streams with the next pulse, from the ring of input."""

from pulse.jit.language.address import floats_at
from pulse.jit.language.atomics import load, store
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from streaming.native.control_block import ControlBlock, StreamInput, inputs_at, marks_at
from streaming.native.mixing import copy_channel
from streaming.native.resample import feed, missing_frames, produce, ready_outputs, resampler_at


@device
def stream_at(control: ControlBlock, number: int) -> StreamInput:
    """Return the first input of a stream."""
    return inputs_at(control.stream_inputs)[number * control.input_count]


@device
def gather(control: ControlBlock, stream: StreamInput, target: Pointer, frames: int) -> None:
    """Copy the samples of one input of a stream from the next frames in the ring, which are contiguous there."""
    channels = control.in_channels
    index = control.in_read & (control.in_ring_frames - 1)
    copy_channel(target, floats_at(control.in_ring) + index * channels, channels, stream.channel, frames)


@device
def fill_slots(control: ControlBlock) -> bool:
    """Take the frames of the next pulse from the ring, and no more; return whether the pulse is complete."""
    pulse, filled, inputs = control.pulse_frames, control.filled_frames, control.streams * control.input_count
    first = inputs_at(control.stream_inputs)
    scratch = floats_at(control.scratch)
    while filled < pulse:
        read = control.in_read
        waiting = load(control, "in_written") - read
        piece = min(
            waiting, control.piece_frames, control.in_ring_frames - (read & (control.in_ring_frames - 1))
        )
        if first.in_resampler == 0:
            piece = produced = min(piece, pulse - filled)
            for s in range(inputs):
                stream = first[s]
                gather(control, stream, floats_at(stream.slot_in) + filled, piece)
        else:
            piece = min(piece, missing_frames(resampler_at(first.in_resampler), pulse - filled))
            produced = 0
            for s in range(inputs):
                stream = first[s]
                resampler = resampler_at(stream.in_resampler)
                if piece > 0:
                    gather(control, stream, scratch, piece)
                    feed(resampler, scratch, 1, piece)
                produced = min(ready_outputs(resampler), pulse - filled)
                produce(resampler, floats_at(stream.slot_in) + filled, 1, produced)
        filled += produced
        control.filled_frames = filled
        store(control, "in_read", read + piece)
        if piece == 0 and produced == 0:
            break
    return filled >= pulse


@device
def arrival_of(control: ControlBlock, fallback_ns: int) -> int:
    """Return the arrival time of the last frame that was taken from the ring."""
    index, written, count = control.marks_read, load(control, "marks_written"), control.mark_count
    arrived = fallback_ns
    while index < written:
        mark = marks_at(control.marks)[index & (count - 1)]
        if mark.frames >= control.in_read:
            arrived = mark.at_ns
            break
        index += 1
    store(control, "marks_read", index)
    return arrived
