# pyright: basic
"""Functions of samples in the pipeline, on f32 pointers."""

from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from streaming.native.control_block import Gains

MIX = -1
"""The channel number that means the mean of all."""


@device
def channel_of(target: Pointer, source: Pointer, channels: int, channel: int, frames: int) -> None:
    """Copy one channel of interleaved frames, or the mean of all."""
    if channel >= 0:
        for i in range(frames):
            target[i] = source[i * channels + channel]
        return
    for i in range(frames):
        total = source[i * channels]
        for other in range(1, channels):
            total += source[i * channels + other]
        target[i] = total / channels


@device
def spread(
    ring: Pointer, capacity: int, at: int, channels: int, first: int, copies: int, sound: Pointer, frames: int
) -> None:
    """Copy samples to ``copies`` channels of a ring of frames; channels that the ring does not have are skipped."""
    for channel in range(first, min(first + copies, channels)):
        for i in range(frames):
            ring[((at + i) & (capacity - 1)) * channels + channel] = sound[i]


@device
def delay(samples: Pointer, count: int, delays: Pointer, length: int, place: int) -> int:
    """Delay samples by ``length`` in place; return the next place in the delay line."""
    if length == 0:
        return 0
    for i in range(count):
        before = delays[place]
        delays[place] = samples[i]
        samples[i] = before
        place += 1
        if place == length:
            place = 0
    return place


@device
def finite(samples: Pointer, count: int) -> int:
    """Replace NaN and infinities by silence in place; return their number."""
    count_of_finite = 0
    for i in range(count):
        value = samples[i]
        if not abs(value) <= 3.4e38:
            samples[i] = 0.0
            count_of_finite += 1
    return count_of_finite


@device
def fade(sound: Pointer, dry: Pointer, gains: Gains, count: int) -> None:
    """Set ``sound = a*sound + b*dry`` in place, with a and b fading from the present gains to the next ones."""
    model, bypass, next_model, next_bypass = gains.model, gains.bypass, gains.next_model, gains.next_bypass
    if model == 1.0 and next_model == 1.0 and bypass == 0.0 and next_bypass == 0.0:
        return
    for i in range(count):
        part = (i + 1) / count
        a = model + part * (next_model - model)
        b = bypass + part * (next_bypass - bypass)
        sound[i] = a * sound[i] + b * dry[i]


@device
def cross(new: Pointer, old: Pointer, count: int) -> None:
    """Cross-fade from ``old`` to ``new``, in place."""
    for i in range(count):
        part = (i + 1) / count
        new[i] = old[i] + part * (new[i] - old[i])
