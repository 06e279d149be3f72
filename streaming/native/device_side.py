"""The device callback's part of the pipeline: write a block to the input ring, read a block from the output ring.

Each counter has one writer, and a position is stored after the frames that it covers.
"""

from pulse.jit.language.address import bytes_at
from pulse.jit.language.atomics import load, store
from pulse.jit.language.raw import as_u8, fill_bytes, move_bytes
from pulse.jit.registry import device
from pulse.jit.rows.fields import FLOAT_BYTES
from pulse.jit.rows.pointer import Pointer
from streaming.native.control_block import WAIT, ControlBlock, Side, arrivals_at
from streaming.native.monotonic_clock import monotonic_ns

MAX_EXTRAPOLATION_NS = 500_000_000
"""The time after its last block during which the position of a device is extrapolated."""


@device
def now_ns(control: ControlBlock) -> int:
    """Return the time, by the virtual clock if it is in use."""
    return control.virtual_now_ns if control.virtual_clock != 0 else monotonic_ns()


@device
def write_ring(ring: int, capacity: int, position: int, source: Pointer, frames: int, channels: int) -> None:
    """Write f32 frames to a ring, from a position on."""
    size, index = channels * FLOAT_BYTES, position & (capacity - 1)
    first = min(frames, capacity - index)
    move_bytes(bytes_at(ring + index * size), as_u8(source), first * size)
    move_bytes(bytes_at(ring), as_u8(source + first * channels), (frames - first) * size)


@device
def read_ring(target: Pointer, ring: int, capacity: int, position: int, frames: int, channels: int) -> None:
    """Read f32 frames from a ring, from a position on."""
    size, index = channels * FLOAT_BYTES, position & (capacity - 1)
    first = min(frames, capacity - index)
    move_bytes(as_u8(target), bytes_at(ring + index * size), first * size)
    move_bytes(as_u8(target + first * channels), bytes_at(ring), (frames - first) * size)


@device
def store_position(side: Side, position: int, now: int) -> None:
    """Record the position and time of a block; ``current_position`` never reads one without the other."""
    store(side, "block_time_ns", 0)
    store(side, "block_position", position)
    store(side, "block_time_ns", now)


@device
def current_position(side: Side, now: int, rate: int) -> float:
    """Estimate the position of a device now, as if it processed single frames; negative if unknown."""
    block_at_ns, position = load(side, "block_time_ns"), load(side, "block_position")
    if (
        block_at_ns == 0
        or load(side, "block_time_ns") != block_at_ns
        or now - block_at_ns > MAX_EXTRAPOLATION_NS
    ):
        return -1.0
    return position + max(now - block_at_ns, 0) * 1e-9 * rate


@device
def capture(control: ControlBlock, source: Pointer, frames: int, at_ns: int) -> None:
    """Write a block from the device to the ring; a block that does not fit is lost and counted."""
    written, capacity = control.in_written, control.in_ring_frames
    if written + frames - load(control, "in_read") > capacity:
        store(control, "frames_lost", control.frames_lost + frames)
        store(control, "frames_in", control.frames_in + frames)
        return
    write_ring(control.in_ring, capacity, written, source, frames, control.in_channels)
    store_position(control.input_side, written, at_ns)
    # after the position: ``play`` of another device reads both
    store(control, "frames_in", control.frames_in + frames)
    index = control.arrivals_written
    if index - load(control, "arrivals_read") < control.arrival_count:
        arrival = arrivals_at(control.arrivals)[index & (control.arrival_count - 1)]
        arrival.frames, arrival.at_ns = written + frames, at_ns
        store(control, "arrivals_written", index + 1)
    store(control, "in_written", written + frames)


@device
def underrun_frames(
    silent: int, skipped: int, lost: int, before_restart: int, rate_in_hz: int, rate_out_hz: int
) -> int:
    """Return the frames by which underruns have made the delay longer: silence, minus skipped and lost frames.

    Underruns before the last restart, which sets the delay itself, do not count. Lost frames count at the output rate.
    """
    if rate_out_hz != rate_in_hz and rate_in_hz > 0:
        lost = lost * rate_out_hz // rate_in_hz
    return silent - skipped - lost - before_restart


@device
def delay_from_underruns(control: ControlBlock) -> int:
    """Return the present ``underrun_frames``, from counters that other threads change."""
    return underrun_frames(
        load(control, "frames_silent"),
        load(control, "frames_skipped"),
        load(control, "frames_lost"),
        control.frames_before_restart,
        control.rate_in_hz,
        control.rate_out_hz,
    )


@device
def underrun_compensation(control: ControlBlock) -> int:
    """Return the late frames to skip because silence was played instead; 0 with the policy ``wait``."""
    return 0 if control.policy == WAIT else max(delay_from_underruns(control), 0)


@device
def start_offset(control: ControlBlock, now: int) -> int:
    """Return the frames by which an output device with its own clock started later than the input."""
    arrived = current_position(control.input_side, now, control.rate_in_hz)
    if arrived < 0:
        return 0
    return max(int((arrived - control.anchor_position) * control.rate_out_hz / control.rate_in_hz + 0.5), 0)


@device
def delay_growth(control: ControlBlock, silent: int) -> int:
    """Return the silent frames that are not due to lateness: for a block longer than planned the delay must grow."""
    if control.planned_block_frames < 0:
        return 0
    needed = control.longest_block_frames * (1 if control.drift == 0 else 2)
    return min(silent, max(needed - control.planned_block_frames - control.delay_growth_frames, 0))


@device
def skip_late(control: ControlBlock, side: Side, available: int, at_ns: int) -> int:
    """Count the ready frames to skip, those from before a device started and late ones; return how many."""
    cut = 0
    if control.drift != 0 and side.block_time_ns == 0:
        cut = min(start_offset(control, at_ns), available)
        control.frames_cut += cut
    late_frames = min(underrun_compensation(control), available - cut)
    if late_frames > 0:
        store(control, "frames_skipped", control.frames_skipped + late_frames)
    return cut + late_frames


@device
def fill_with_silence(control: ControlBlock, target: Pointer, frames: int) -> None:
    """Fill the rest of a block for which no more frames are ready."""
    fill_bytes(as_u8(target), 0, frames * control.out_channels * FLOAT_BYTES)
    grown = delay_growth(control, frames)
    control.delay_growth_frames += grown
    store(control, "frames_silent", control.frames_silent + frames - grown)


@device
def keep_played(control: ControlBlock, source: Pointer, frames: int) -> None:
    """Copy the played audio, including silence, to the ring of played audio; only the end of a long block."""
    channels, capacity = control.out_channels, control.out_ring_frames
    kept = min(frames, capacity)
    excess = frames - kept
    write_ring(
        control.played_ring, capacity, control.frames_out + excess, source + excess * channels, kept, channels
    )


@device
def play(control: ControlBlock, side: Side, target: Pointer, frames: int, at_ns: int) -> None:
    """Write a block for the device: the ready frames, then silence."""
    read, channels = control.out_read, control.out_channels
    if load(control, "frames_in") <= control.anchor:
        fill_bytes(as_u8(target), 0, frames * channels * FLOAT_BYTES)
        return
    available = load(control, "out_written") - read
    control.longest_block_frames = max(control.longest_block_frames, frames)
    skipped = skip_late(control, side, available, at_ns)
    read, available = read + skipped, available - skipped
    store_position(side, read, at_ns)
    count = min(frames, available)
    read_ring(target, control.out_ring, control.out_ring_frames, read, count, channels)
    if count < frames:
        fill_with_silence(control, target + count * channels, frames - count)
    keep_played(control, target, frames)
    store(control, "out_read", read + count)
    store(control, "frames_out", control.frames_out + frames)
