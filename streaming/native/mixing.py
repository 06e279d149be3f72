# pyright: basic
"""Functions of samples in the pipeline; pointers to f32."""

from pulse.jit.pointer import Pointer
from pulse.jit.registry import device
from streaming.native.control_block import Gains

MIX = -1
"""The channel that is the mean of all."""


@device
def channel_of(target: Pointer, source: Pointer, channels: int, channel: int, frames: int) -> None:
    """One channel of interleaved frames, or the mean of all."""
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
    """Samples into ``copies`` channels of a ring of frames; a channel that the ring has not is left out."""
    for channel in range(first, min(first + copies, channels)):
        for i in range(frames):
            ring[((at + i) & (capacity - 1)) * channels + channel] = sound[i]


@device
def delay(samples: Pointer, count: int, delays: Pointer, length: int, place: int) -> int:
    """Samples exchanged with those of ``length`` before, in place; gives the next place in the delay line."""
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
    """NaN and infinities made silent, in place; how many there were."""
    count_of_finite = 0
    for i in range(count):
        value = samples[i]
        if not abs(value) <= 3.4e38:
            samples[i] = 0.0
            count_of_finite += 1
    return count_of_finite


@device
def fade(sound: Pointer, dry: Pointer, gains: Gains, count: int) -> None:
    """``sound = a*sound + b*dry`` in place, a and b going from the gains now to the next ones."""
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
    """``new`` fades in over ``old``, in place."""
    for i in range(count):
        part = (i + 1) / count
        new[i] = old[i] + part * (new[i] - old[i])
