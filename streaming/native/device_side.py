# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""The device callback's part of the pipeline: a block into the ring of input, a block out of the ring of output.

Each counter has one writer, and a position is stored after what it stands for.
"""

from pulse.jit.address import bytes_at, words_at
from pulse.jit.atomics import load, store
from pulse.jit.pointer import Pointer
from pulse.jit.raw import as_u8, fill_bytes, move_bytes
from pulse.jit.registry import device
from streaming.native import control_block as cb
from streaming.native.primitives import monotonic_ns

FLOAT = 4
LONGEST_BLOCK_NS = 500_000_000
"""So long after its last block it is known how far a device is."""


@device
def now_ns(control: Pointer) -> int:
    """The time, of the virtual clock where there is one."""
    return control[cb.VIRTUAL_NOW_NS] if control[cb.VIRTUAL_CLOCK] != 0 else monotonic_ns()


@device
def into_ring(ring: int, capacity: int, at: int, source: Pointer, frames: int, channels: int) -> None:
    """Write frames to a ring, from the position ``at`` on; f32."""
    size, place = channels * FLOAT, at & (capacity - 1)
    first = min(frames, capacity - place)
    move_bytes(bytes_at(ring + place * size), as_u8(source), first * size)
    move_bytes(bytes_at(ring), as_u8(source + first * channels), (frames - first) * size)


@device
def from_ring(target: Pointer, ring: int, capacity: int, at: int, frames: int, channels: int) -> None:
    """The reverse."""
    size, place = channels * FLOAT, at & (capacity - 1)
    first = min(frames, capacity - place)
    move_bytes(as_u8(target), bytes_at(ring + place * size), first * size)
    move_bytes(as_u8(target + first * channels), bytes_at(ring), (frames - first) * size)


@device
def store_position(side: Pointer, place: int, now: int) -> None:
    """A block has come that begins there; ``position`` never sees a half of this."""
    store(side, cb.BLOCK_TIME_NS, 0)
    store(side, cb.BLOCK_POSITION, place)
    store(side, cb.BLOCK_TIME_NS, now)


@device
def position(side: Pointer, now: int, rate: int) -> float:
    """How far a device would be now if it gave or took single frames; negative where that is not known."""
    at, place = load(side, cb.BLOCK_TIME_NS), load(side, cb.BLOCK_POSITION)
    if at == 0 or load(side, cb.BLOCK_TIME_NS) != at or now - at > LONGEST_BLOCK_NS:
        return -1.0
    return place + max(now - at, 0) * 1e-9 * rate


@device
def capture(control: Pointer, source: Pointer, frames: int, at_ns: int) -> None:
    """Take a block from the device; if it does not fit into the ring, it is lost and counted."""
    written, capacity = control[cb.IN_WRITTEN], control[cb.IN_FRAMES]
    if written + frames - load(control, cb.IN_READ) > capacity:
        store(control, cb.FRAMES_LOST, control[cb.FRAMES_LOST] + frames)
        store(control, cb.FRAMES_IN, control[cb.FRAMES_IN] + frames)
        return
    into_ring(control[cb.IN_RING], capacity, written, source, frames, control[cb.IN_CHANNELS])
    store_position(control + cb.SIDES, written, at_ns)
    # not before the place: ``play`` of another device asks for both
    store(control, cb.FRAMES_IN, control[cb.FRAMES_IN] + frames)
    mark = control[cb.MARKS_WRITTEN]
    if mark - load(control, cb.MARKS_READ) < control[cb.MARK_COUNT]:
        place = words_at(control[cb.MARKS]) + 2 * (mark & (control[cb.MARK_COUNT] - 1))
        place[0] = written + frames
        place[1] = at_ns
        store(control, cb.MARKS_WRITTEN, mark + 1)
    store(control, cb.IN_WRITTEN, written + frames)


@device
def underrun_compensation(control: Pointer) -> int:
    """Underrun compensation: late frames to skip, because silence was played in their place."""
    if control[cb.POLICY] == cb.WAITS:
        return 0
    lost = load(control, cb.FRAMES_LOST)
    if control[cb.OUT_RATE] != control[cb.IN_RATE] and control[cb.IN_RATE] > 0:
        lost = lost * control[cb.OUT_RATE] // control[cb.IN_RATE]
    return max(
        load(control, cb.FRAMES_SILENT) - load(control, cb.FRAMES_SKIPPED) - lost - control[cb.FORGIVEN], 0
    )


@device
def start_offset(control: Pointer, now: int) -> int:
    """How many frames an output with a clock of its own begins later than the input did."""
    came = position(control + cb.SIDES, now, control[cb.IN_RATE])
    if came < 0:
        return 0
    return max(int((came - control[cb.ANCHOR_PLACE]) * control[cb.OUT_RATE] / control[cb.IN_RATE] + 0.5), 0)


@device
def delay_growth(control: Pointer, silent: int) -> int:
    """How much of a silence is none of lateness: blocks are longer than was known, and the delay grows to suit them."""
    if control[cb.SPARE] < 0:
        return 0
    needed = control[cb.LONGEST_BLOCK] * (1 if control[cb.DRIFT] == 0 else 2)
    return min(silent, max(needed - control[cb.SPARE] - control[cb.GROWN], 0))


@device
def play(control: Pointer, side: Pointer, target: Pointer, frames: int, at_ns: int) -> None:
    """Give a block to the device: what is ready, then silence."""
    read, channels, capacity = control[cb.OUT_READ], control[cb.OUT_CHANNELS], control[cb.OUT_FRAMES]
    if load(control, cb.FRAMES_IN) <= control[cb.ANCHOR]:
        fill_bytes(as_u8(target), 0, frames * channels * FLOAT)
        return
    available = load(control, cb.OUT_WRITTEN) - read
    control[cb.LONGEST_BLOCK] = max(control[cb.LONGEST_BLOCK], frames)
    if control[cb.DRIFT] != 0 and side[cb.BLOCK_TIME_NS] == 0:
        cut = min(start_offset(control, at_ns), available)
        control[cb.CUT] = control[cb.CUT] + cut
        read, available = read + cut, available - cut
    skipped = min(underrun_compensation(control), available)
    if skipped > 0:
        store(control, cb.FRAMES_SKIPPED, control[cb.FRAMES_SKIPPED] + skipped)
    read, available = read + skipped, available - skipped
    store_position(side, read, at_ns)
    count = min(frames, available)
    from_ring(target, control[cb.OUT_RING], capacity, read, count, channels)
    if count < frames:
        fill_bytes(as_u8(target + count * channels), 0, (frames - count) * channels * FLOAT)
        grown = delay_growth(control, frames - count)
        control[cb.GROWN] = control[cb.GROWN] + grown
        store(control, cb.FRAMES_SILENT, control[cb.FRAMES_SILENT] + (frames - count - grown))
        control[cb.LATE] = control[cb.LATE] + 1
    kept = min(frames, capacity)
    left_out = frames - kept
    into_ring(
        control[cb.PLAYED],
        capacity,
        control[cb.FRAMES_OUT] + left_out,
        target + left_out * channels,
        kept,
        channels,
    )
    store(control, cb.OUT_READ, read + count)
    store(control, cb.FRAMES_OUT, control[cb.FRAMES_OUT] + frames)
