"""Functions of samples in the pipeline, on f32 pointers."""

from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from streaming.native.control_block import Gains

MEAN_OF_CHANNELS = -1
"""The channel number that means the mean of all."""


@device
def copy_samples(target: Pointer, target_step: int, source: Pointer, source_step: int, count: int) -> None:
    """Copy samples that are ``source_step`` elements apart to places that are ``target_step`` elements apart."""
    for i in range(count):
        target[i * target_step] = source[i * source_step]


@device
def copy_channel(
    target: Pointer, step: int, source: Pointer, channels: int, channel: int, frames: int
) -> None:
    """Copy one channel of interleaved frames, or the mean of all, to places that are ``step`` elements apart."""
    if channel >= 0:
        copy_samples(target, step, source + channel, channels, frames)
        return
    for i in range(frames):
        total = source[i * channels]
        for other in range(1, channels):
            total += source[i * channels + other]
        target[i * step] = total / channels


@device
def write_channels(
    ring: Pointer,
    capacity: int,
    position: int,
    channels: int,
    first: int,
    copies: int,
    sound: Pointer,
    frames: int,
) -> None:
    """Copy samples to ``copies`` channels of a ring of frames; channels that the ring does not have are skipped."""
    for channel in range(first, min(first + copies, channels)):
        for i in range(frames):
            ring[((position + i) & (capacity - 1)) * channels + channel] = sound[i]


@device
def delay(samples: Pointer, count: int, delays: Pointer, length: int, index: int) -> int:
    """Delay samples by ``length`` in place; return the next index of the delay line."""
    if length == 0:
        return 0
    for i in range(count):
        delayed = delays[index]
        delays[index] = samples[i]
        samples[i] = delayed
        index += 1
        if index == length:
            index = 0
    return index


@device
def replace_nonfinite(samples: Pointer, count: int) -> int:
    """Replace NaN and infinities by silence in place; return their number."""
    replaced = 0
    for i in range(count):
        value = samples[i]
        if not abs(value) <= 3.4e38:
            samples[i] = 0.0
            replaced += 1
    return replaced


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
def cross_fade(new: Pointer, old: Pointer, count: int) -> None:
    """Cross-fade from ``old`` to ``new``, in place."""
    for i in range(count):
        part = (i + 1) / count
        new[i] = old[i] + part * (new[i] - old[i])
