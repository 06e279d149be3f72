"""Fill the slots of the streams with the next pulse, from the input ring."""

from pulse.jit.language.address import floats_at
from pulse.jit.language.atomics import load, store
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from streaming.native.control_block import ControlBlock, StreamInput, arrivals_at, inputs_at
from streaming.native.mixing import copy_channel
from streaming.native.resample import feed, missing_frames, produce, ready_outputs, resampler_at


@device
def gather(control: ControlBlock, source: StreamInput, target: Pointer, step: int, frames: int) -> None:
    """Copy the samples of an input from the next frames in the ring to places that are ``step`` elements apart."""
    channels = control.in_channels
    index = control.in_read & (control.in_ring_frames - 1)
    copy_channel(
        target, step, floats_at(control.in_ring) + index * channels, channels, source.channel, frames
    )


@device
def fill_slots(control: ControlBlock) -> bool:
    """Take the frames of the next pulse from the ring, and no more; return whether the pulse is complete."""
    pulse, filled = control.pulse_frames, control.filled_frames
    inputs, input_count = inputs_at(control.inputs), control.stream_count * control.input_count
    scratch = floats_at(control.scratch)
    while filled < pulse:
        read = control.in_read
        waiting = load(control, "in_written") - read
        piece = min(
            waiting, control.piece_frames, control.in_ring_frames - (read & (control.in_ring_frames - 1))
        )
        if inputs.resampler == 0:
            piece = produced = min(piece, pulse - filled)
            for index in range(input_count):
                source = inputs[index]
                gather(control, source, floats_at(source.slot) + filled * source.step, source.step, piece)
        else:
            piece = min(piece, missing_frames(resampler_at(inputs.resampler), pulse - filled))
            produced = 0
            for index in range(input_count):
                source = inputs[index]
                resampler = resampler_at(source.resampler)
                if piece > 0:
                    gather(control, source, scratch, 1, piece)
                    feed(resampler, scratch, 1, piece)
                produced = min(ready_outputs(resampler), pulse - filled)
                produce(resampler, floats_at(source.slot) + filled * source.step, source.step, produced)
        filled += produced
        control.filled_frames = filled
        store(control, "in_read", read + piece)
        if piece == 0 and produced == 0:
            break
    return filled >= pulse


@device
def arrival_of(control: ControlBlock, fallback_ns: int) -> int:
    """Return the arrival time of the last frame that was taken from the ring."""
    index, written, count = control.arrivals_read, load(control, "arrivals_written"), control.arrival_count
    arrived = fallback_ns
    while index < written:
        arrival = arrivals_at(control.arrivals)[index & (count - 1)]
        if arrival.frames >= control.in_read:
            arrived = arrival.at_ns
            break
        index += 1
    store(control, "arrivals_read", index)
    return arrived
