# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""What the callback of a device does: a block into the ring of input, a block out of the ring of output.

Each counter has one writer, and a position is stored after what it stands for.
"""

from numba.core import types

from pulse.program.kernels.address import bytes_at, words_at
from pulse.program.kernels.pointer import Pointer
from pulse.program.kernels.raw import as_u8, fill_bytes, move_bytes
from pulse.program.kernels.registry import device
from streaming.native import line_words as w
from streaming.native.primitives import load, monotonic_ns, store

FLOAT = 4
LONGEST_BLOCK_NS = 500_000_000
"""So long after its last block it is known how far a device is."""


@device
def now_ns(words: Pointer) -> int:
    """The time, or what a test says that it is."""
    return words[w.HELD_NOW_NS] if words[w.HELD] != 0 else monotonic_ns()


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
def put_place(side: Pointer, place: int, now: int) -> None:
    """A block has come that begins there; ``position`` never sees a half of this."""
    store(side, w.PLACED_NS, 0)
    store(side, w.PLACE, place)
    store(side, w.PLACED_NS, now)


@device
def position(side: Pointer, now: int, rate: int) -> float:
    """How far a device would be now if it gave or took single frames; negative where that is not known."""
    at, place = load(side, w.PLACED_NS), load(side, w.PLACE)
    if at == 0 or load(side, w.PLACED_NS) != at or now - at > LONGEST_BLOCK_NS:
        return -1.0
    return place + max(now - at, 0) * 1e-9 * rate


@device
def capture(words: Pointer, source: Pointer, frames: int, at_ns: int) -> None:
    """Take a block from the device; where the ring has no room the block is lost, and counted."""
    written, capacity = words[w.IN_WRITTEN], words[w.IN_FRAMES]
    if written + frames - load(words, w.IN_READ) > capacity:
        store(words, w.FRAMES_LOST, words[w.FRAMES_LOST] + frames)
        store(words, w.FRAMES_IN, words[w.FRAMES_IN] + frames)
        return
    into_ring(words[w.IN_RING], capacity, written, source, frames, words[w.IN_CHANNELS])
    put_place(words + w.SIDES, written, at_ns)
    # not before the place: ``play`` of another device asks for both
    store(words, w.FRAMES_IN, words[w.FRAMES_IN] + frames)
    mark = words[w.MARKS_WRITTEN]
    if mark - load(words, w.MARKS_READ) < words[w.MARK_COUNT]:
        place = words_at(words[w.MARKS]) + 2 * (mark & (words[w.MARK_COUNT] - 1))
        place[0] = written + frames
        place[1] = at_ns
        store(words, w.MARKS_WRITTEN, mark + 1)
    store(words, w.IN_WRITTEN, written + frames)


@device
def owed(words: Pointer) -> int:
    """The debt: frames of output that were played as silence, and are to be skipped when they come."""
    if words[w.POLICY] == w.WAITS:
        return 0
    lost = load(words, w.FRAMES_LOST)
    if words[w.OUT_RATE] != words[w.IN_RATE] and words[w.IN_RATE] > 0:
        lost = lost * words[w.OUT_RATE] // words[w.IN_RATE]
    return max(load(words, w.FRAMES_SILENT) - load(words, w.FRAMES_SKIPPED) - lost - words[w.FORGIVEN], 0)


@device
def behind(words: Pointer, now: int) -> int:
    """How many frames an output with a clock of its own begins later than the input did."""
    came = position(words + w.SIDES, now, words[w.IN_RATE])
    if came < 0:
        return 0
    return max(types.int64((came - words[w.ANCHOR_PLACE]) * words[w.OUT_RATE] / words[w.IN_RATE] + 0.5), 0)


@device
def agreed(words: Pointer, silent: int) -> int:
    """How much of a silence is none of lateness: blocks are longer than was known, and the delay grows to suit them."""
    if words[w.SPARE] < 0:
        return 0
    needed = words[w.LONGEST_BLOCK] * (1 if words[w.DRIFT] == 0 else 2)
    return min(silent, max(needed - words[w.SPARE] - words[w.GROWN], 0))


@device
def play(words: Pointer, side: Pointer, target: Pointer, frames: int, at_ns: int) -> None:
    """Give a block to the device: what is ready, then silence."""
    read, channels, capacity = words[w.OUT_READ], words[w.OUT_CHANNELS], words[w.OUT_FRAMES]
    if load(words, w.FRAMES_IN) <= words[w.ANCHOR]:
        fill_bytes(as_u8(target), 0, frames * channels * FLOAT)
        return
    available = load(words, w.OUT_WRITTEN) - read
    words[w.LONGEST_BLOCK] = max(words[w.LONGEST_BLOCK], frames)
    if words[w.DRIFT] != 0 and side[w.PLACED_NS] == 0:
        cut = min(behind(words, at_ns), available)
        words[w.CUT] = words[w.CUT] + cut
        read, available = read + cut, available - cut
    skipped = min(owed(words), available)
    if skipped > 0:
        store(words, w.FRAMES_SKIPPED, words[w.FRAMES_SKIPPED] + skipped)
    read, available = read + skipped, available - skipped
    put_place(side, read, at_ns)
    count = min(frames, available)
    from_ring(target, words[w.OUT_RING], capacity, read, count, channels)
    if count < frames:
        fill_bytes(as_u8(target + count * channels), 0, (frames - count) * channels * FLOAT)
        grown = agreed(words, frames - count)
        words[w.GROWN] = words[w.GROWN] + grown
        store(words, w.FRAMES_SILENT, words[w.FRAMES_SILENT] + (frames - count - grown))
        words[w.LATE] = words[w.LATE] + 1
    kept = min(frames, capacity)
    left_out = frames - kept
    into_ring(
        words[w.PLAYED],
        capacity,
        words[w.FRAMES_OUT] + left_out,
        target + left_out * channels,
        kept,
        channels,
    )
    store(words, w.OUT_READ, read + count)
    store(words, w.FRAMES_OUT, words[w.FRAMES_OUT] + frames)
