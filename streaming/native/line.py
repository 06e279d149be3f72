# pyright: basic, reportIndexIssue=false, reportArgumentType=false
"""The line: blocks from a device through a model, and back. Words are those of ``line_words``.

``capture`` and ``play`` belong to the device's callback, ``pump`` to the worker, or to the callback too. Each counter
has one writer, and a position is stored after what it stands for.
"""

from numba.core import types

from pulse.program.kernels.address import bytes_at, call_at, doubles_at, floats_at, words_at
from pulse.program.kernels.entries import callback, entry
from pulse.program.kernels.pointer import Pointer
from pulse.program.kernels.raw import as_i64, as_u8, fill_bytes, move_bytes
from pulse.program.kernels.registry import device
from pulse.program.machine import flush_denormals, restore_denormals
from pulse.program.packed import packed_step
from streaming.native import line_words as w
from streaming.native.drift import DELAY, TARGET, corrected
from streaming.native.histogram import record
from streaming.native.mixing import channel_of, cross, delayed, faded, finite, spread
from streaming.native.primitives import load, monotonic_ns, replace, set_event, store, wait_event
from streaming.native.resample import feed, missing, produce, ready, tune

FLOAT = 4
LONGEST_BLOCK_S = 0.5
"""So long after its last block a device that does not call is taken to go on."""


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
    if at == 0 or load(side, w.PLACED_NS) != at:
        return -1.0
    return place + min(max(now - at, 0) * 1e-9, LONGEST_BLOCK_S) * rate


@device
def capture(words: Pointer, source: Pointer, frames: int, at_ns: int) -> None:
    """Take a block from the device; where the ring has no room the block is lost, and counted."""
    written, capacity = words[w.IN_WRITTEN], words[w.IN_FRAMES]
    store(words, w.FRAMES_IN, words[w.FRAMES_IN] + frames)
    if written + frames - load(words, w.IN_READ) > capacity:
        store(words, w.FRAMES_LOST, words[w.FRAMES_LOST] + frames)
        return
    into_ring(words[w.IN_RING], capacity, written, source, frames, words[w.IN_CHANNELS])
    put_place(words + w.SIDES, written, at_ns)
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
def play(words: Pointer, side: Pointer, target: Pointer, frames: int, at_ns: int) -> None:
    """Give a block to the device: what is ready, then silence."""
    read, channels, capacity = words[w.OUT_READ], words[w.OUT_CHANNELS], words[w.OUT_FRAMES]
    if load(words, w.FRAMES_IN) <= words[w.ANCHOR]:
        fill_bytes(as_u8(target), 0, frames * channels * FLOAT)
        return
    available = load(words, w.OUT_WRITTEN) - read
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
        store(words, w.FRAMES_SILENT, words[w.FRAMES_SILENT] + (frames - count))
        words[w.LATE] = words[w.LATE] + 1
    kept = min(frames, capacity)
    left_out = frames - kept
    into_ring(
        words[w.PLAYED], capacity, words[w.FRAMES_OUT] + left_out, target + left_out * channels, kept, channels
    )
    store(words, w.OUT_READ, read + count)
    store(words, w.FRAMES_OUT, words[w.FRAMES_OUT] + frames)


@device
def gather(words: Pointer, stream: Pointer, target: Pointer, frames: int) -> None:
    """One stream's samples of the next frames in the ring, which lie in one piece there."""
    channels = words[w.IN_CHANNELS]
    place = words[w.IN_READ] & (words[w.IN_FRAMES] - 1)
    channel_of(target, floats_at(words[w.IN_RING]) + place * channels, channels, stream[w.CHANNEL], frames)


@device
def fill_slots(words: Pointer) -> bool:
    """Take from the ring what the next pulse needs, no frame more; whether it is there."""
    pulse, filled, streams = words[w.PULSE], words[w.FILLED], words[w.STREAMS]
    first = words_at(words[w.STREAM])
    scratch = floats_at(words[w.SCRATCH])
    while filled < pulse:
        read = words[w.IN_READ]
        waiting = load(words, w.IN_WRITTEN) - read
        piece = min(waiting, words[w.LARGEST], words[w.IN_FRAMES] - (read & (words[w.IN_FRAMES] - 1)))
        if first[w.IN_RESAMPLER] == 0:
            piece = made = min(piece, pulse - filled)
            for s in range(streams):
                stream = first + s * w.STREAM_WORDS
                gather(words, stream, floats_at(stream[w.SLOT_IN]) + filled, piece)
        else:
            piece = min(piece, missing(words_at(first[w.IN_RESAMPLER]), pulse - filled))
            made = 0
            for s in range(streams):
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


@device
def run_voices(words: Pointer, voices: int) -> None:
    """One pulse of the model for every stream; what the model's delay makes invalid is silent."""
    pulse, sound = words[w.PULSE], words[w.OUT_CHANNELS] > 0
    for s in range(words[w.STREAMS]):
        voice = words_at(voices) + s * w.VOICE_WORDS
        stream = words_at(words[w.STREAM]) + s * w.STREAM_WORDS
        packed_step(words_at(voice[w.PACKED]), stream[w.SLOT_IN], voice[w.SLOT_OUT])
        voice[w.RAN] = voice[w.RAN] + 1
        if sound:
            heard = floats_at(voice[w.HEARD])
            move_bytes(as_u8(heard), bytes_at(voice[w.SLOT_OUT] + voice[w.SOUND]), pulse * FLOAT)
            invalid = min(voice[w.DELAY_LEFT], pulse)
            if invalid > 0:
                fill_bytes(as_u8(heard), 0, invalid * FLOAT)
                voice[w.DELAY_LEFT] = voice[w.DELAY_LEFT] - invalid
            voice[w.LINE_PLACE] = delayed(
                heard, pulse, floats_at(voice[w.LINE]), voice[w.LINE_FRAMES], voice[w.LINE_PLACE]
            )


@device
def silence_voices(words: Pointer) -> None:
    """A pulse that is not computed."""
    for s in range(words[w.STREAMS]):
        voice = words_at(words[w.VOICES]) + s * w.VOICE_WORDS
        fill_bytes(bytes_at(voice[w.SLOT_OUT]), 0, words[w.OUTPUT_BYTES])
        fill_bytes(bytes_at(voice[w.HEARD]), 0, words[w.PULSE] * FLOAT)


@device
def change_voices(words: Pointer) -> None:
    """The next voices have run along; when they are primed, fade over within this pulse."""
    words[w.PRIMING] = words[w.PRIMING] - 1
    if words[w.PRIMING] > 0:
        return
    if words[w.OUT_CHANNELS] > 0:
        for s in range(words[w.STREAMS]):
            old = words_at(words[w.VOICES]) + s * w.VOICE_WORDS
            new = words_at(words[w.NEXT_VOICES]) + s * w.VOICE_WORDS
            cross(floats_at(new[w.HEARD]), floats_at(old[w.HEARD]), words[w.PULSE])
    words[w.VOICES] = words[w.NEXT_VOICES]
    store(words, w.NEXT_VOICES, 0)  # not before the other: Python asks for this one first


@device
def mix(words: Pointer) -> None:
    """The model's sound and the input, which has waited as long as the model's, by their gains."""
    pulse, gains = words[w.PULSE], floats_at(words[w.GAINS])
    for s in range(words[w.STREAMS]):
        stream = words_at(words[w.STREAM]) + s * w.STREAM_WORDS
        voice = words_at(words[w.VOICES]) + s * w.VOICE_WORDS
        sound, dry = floats_at(voice[w.HEARD]), floats_at(stream[w.DRY])
        move_bytes(as_u8(dry), bytes_at(stream[w.SLOT_IN]), pulse * FLOAT)
        stream[w.DRY_PLACE] = delayed(
            dry, pulse, floats_at(stream[w.DRY_LINE]), stream[w.DRY_FRAMES], stream[w.DRY_PLACE]
        )
        words[w.NONFINITE] = words[w.NONFINITE] + finite(sound, pulse)
        faded(sound, dry, gains, pulse)
    gains[0] = gains[2]
    gains[1] = gains[3]


@device
def send(words: Pointer) -> None:
    """The mixed pulse into the ring of output."""
    written, capacity, channels = words[w.OUT_WRITTEN], words[w.OUT_FRAMES], words[w.OUT_CHANNELS]
    streams, made = words[w.STREAMS], words[w.PULSE]
    ring = floats_at(words[w.OUT_RING])
    for s in range(streams):
        stream = words_at(words[w.STREAM]) + s * w.STREAM_WORDS
        voice = words_at(words[w.VOICES]) + s * w.VOICE_WORDS
        sound, copies = floats_at(voice[w.HEARD]), channels if streams == 1 else 1
        if stream[w.OUT_RESAMPLER] == 0:
            spread(ring, capacity, written, channels, s, copies, sound, made)
        else:
            resampler = words_at(stream[w.OUT_RESAMPLER])
            feed(resampler, sound, 1, words[w.PULSE])
            made = ready(resampler)
            done = 0
            while done < made:
                piece = min(made - done, words[w.LARGEST])
                produce(resampler, floats_at(words[w.SCRATCH]), 1, piece)
                spread(ring, capacity, written + done, channels, s, copies, floats_at(words[w.SCRATCH]), piece)
                done += piece
    store(words, w.OUT_WRITTEN, written + made)
    if words[w.DRIFT] != 0 and owed(words) == 0:
        follow_clocks(words, made)


@device
def follow_clocks(words: Pointer, made: int) -> None:
    """Tune the last resamplers so that frames stay on the line as long as they should; so many were just written.

    Where both devices are, is reckoned by the time, so that it makes no difference where in a block they are now.
    """
    now, sides = now_ns(words), words + w.SIDES
    came = position(sides, now, words[w.IN_RATE])
    went = position(sides + w.SIDE_WORDS, now, words[w.OUT_RATE])
    if came < 0 or went < 0:
        return
    before = (came - words[w.IN_READ]) * words[w.OUT_RATE] / words[w.IN_RATE]
    adjust = corrected(
        doubles_at(words[w.DRIFT]), before + words[w.OUT_WRITTEN] - went, made, words[w.OUT_RATE]
    )
    for s in range(words[w.STREAMS]):
        stream = words_at(words[w.STREAM]) + s * w.STREAM_WORDS
        tune(words_at(stream[w.OUT_RESAMPLER]), adjust)


@device
def keep_record(words: Pointer, arrived: int, done: int) -> None:
    """All outputs of the pulse for Python; where it does not take them they are lost, and counted."""
    written, count = words[w.RECORDS_WRITTEN], words[w.RECORD_COUNT]
    if written - load(words, w.RECORDS_READ) >= count:
        words[w.RECORDS_LOST] = words[w.RECORDS_LOST] + 1
        return
    place = bytes_at(words[w.RECORDS] + (written & (count - 1)) * words[w.RECORD_BYTES])
    header, size = as_i64(place), words[w.OUTPUT_BYTES]
    header[0] = words[w.PULSES]
    header[1] = arrived
    header[2] = done
    header[3] = words[w.LOADS]
    header[4] = words[w.LOADED]
    for s in range(words[w.STREAMS]):
        voice = words_at(words[w.VOICES]) + s * w.VOICE_WORDS
        move_bytes(place + (w.RECORD_HEADER + s * size), bytes_at(voice[w.SLOT_OUT]), size)
    store(words, w.RECORDS_WRITTEN, written + 1)
    if words[w.NOTIFY] >= 0:
        set_event(words[w.NOTIFY])


@device
def compute(words: Pointer, begun: int, arrived: int) -> None:
    """Run the model, for the next voices too where there are some."""
    changes = words[w.NEXT_VOICES] != 0
    for turn in range(2 if changes else 1):
        run_voices(words, words[w.NEXT_VOICES if turn else w.VOICES])
    if changes:
        change_voices(words)
    computed = now_ns(words)
    record(words_at(words[w.COMPUTE_TIMES]), computed - begun)
    record(words_at(words[w.WAITING_TIMES]), begun - arrived)
    words[w.COMPUTE_NS] = words[w.COMPUTE_NS] + (computed - begun)


@callback("line.run_pulse", types.void(types.int64))
def run_pulse(address):
    """The slots are full: run the model, or leave it out, pass its outputs on, and account for the time."""
    words = words_at(address)
    begun = now_ns(words) if words[w.BEGUN_NS] == 0 else words[w.BEGUN_NS]
    arrived = arrival_of(words, begun)
    plays = words[w.OUT_CHANNELS] > 0
    backlog = words[w.OUT_WRITTEN] - load(words, w.OUT_READ)
    dropped = plays and words[w.POLICY] == w.DROPS and owed(words) >= backlog + words[w.ROOM]
    if dropped:
        silence_voices(words)
        store(words, w.PULSES_DROPPED, words[w.PULSES_DROPPED] + 1)
    else:
        compute(words, begun, arrived)
    if plays:
        mix(words)
        send(words)
    done = now_ns(words)
    if not dropped:
        record(words_at(words[w.TOTAL_TIMES]), done - arrived)
        if done - arrived > words[w.DEADLINE_NS]:
            words[w.MISSED] = words[w.MISSED] + 1
    words[w.FILLED] = 0
    words[w.BEGUN_NS] = 0
    if words[w.RECORDS] != 0:
        keep_record(words, arrived, done)
    store(words, w.PULSES, words[w.PULSES] + 1)


@device
def restart(words: Pointer) -> None:
    """No device is open, and one will be: what it plays is to be as late as it was when all began.

    Where input and output stopped at one block, it is. Else the ring of output is cut, or filled up with silence, and
    there is no debt.
    """
    words[w.ANCHOR] = words[w.FRAMES_IN]
    words[w.ANCHOR_PLACE] = words[w.IN_WRITTEN]
    for side in range(2):
        words[w.SIDES + side * w.SIDE_WORDS + w.LAST_NS] = 0
        words[w.SIDES + side * w.SIDE_WORDS + w.PLACED_NS] = 0
    if words[w.DRIFT] == 0:
        return
    surplus = words[w.OUT_WRITTEN] - words[w.OUT_READ] - words[w.BEGINS_WITH]
    if surplus > 0:
        words[w.CUT] = words[w.CUT] + surplus
        words[w.OUT_READ] = words[w.OUT_READ] + surplus
    ring, channels = words[w.OUT_RING], words[w.OUT_CHANNELS]
    for _ in range(-surplus):
        place = words[w.OUT_WRITTEN] & (words[w.OUT_FRAMES] - 1)
        fill_bytes(bytes_at(ring + place * channels * FLOAT), 0, channels * FLOAT)
        words[w.OUT_WRITTEN] = words[w.OUT_WRITTEN] + 1
        words[w.AGREED] = words[w.AGREED] + 1
    words[w.FORGIVEN] = words[w.FRAMES_SILENT] - words[w.FRAMES_SKIPPED] - words[w.FRAMES_LOST]
    drift = doubles_at(words[w.DRIFT])
    drift[DELAY] = drift[TARGET]


@device
def obey(words: Pointer) -> None:
    """What Python wants done between two pulses."""
    order = load(words, w.COMMAND)
    if order == w.NONE or not replace(words, w.COMMAND, order, w.TAKEN):
        return
    if order == w.SWAP:
        words[w.PRIMING] = words[w.SECOND]
        store(words, w.NEXT_VOICES, words[w.FIRST])
    elif order == w.RESTART:
        restart(words)
    else:
        address = words[w.FIRST]
        words[w.SAVED] = words_at(words[w.VOICES])[w.RAN]
        for s in range(words[w.STREAMS]):
            voice = words_at(words[w.VOICES]) + s * w.VOICE_WORDS
            if order == w.SAVE:
                move_bytes(bytes_at(address), bytes_at(voice[w.MEMORY]), voice[w.MEMORY_BYTES])
            else:
                move_bytes(bytes_at(voice[w.MEMORY]), bytes_at(address), voice[w.MEMORY_BYTES])
                voice[w.RAN] = words[w.SECOND]
                voice[w.DELAY_LEFT] = max(voice[w.DELAY] - words[w.SECOND] * words[w.PULSE], 0)
            address += voice[w.MEMORY_BYTES]
        if order == w.LOAD:
            words[w.LOADS] = words[w.LOADS] + 1
            words[w.LOADED] = words[w.SECOND]
    store(words, w.COMMAND, w.NONE)


@device
def may_run(words: Pointer) -> bool:
    """Whether nothing has ended the run, and what the next pulse adds has room."""
    voice = words_at(words[w.VOICES])
    if words[w.POLICY] == w.ABORTS and load(words, w.FRAMES_SILENT) > 0:
        store(words, w.STATUS, w.WAS_LATE)
    elif voice[w.RAN] >= voice[w.LIMIT]:
        store(words, w.STATUS, w.LIMIT_REACHED)
    backlog = words[w.OUT_WRITTEN] - load(words, w.OUT_READ)
    has_room = words[w.OUT_CHANNELS] == 0 or backlog + words[w.ROOM] <= words[w.OUT_FRAMES]
    return words[w.STATUS] == w.RUNNING and has_room


@callback("line.pump", types.void(types.int64))
def pump(address):
    """Run all pulses that are there and have room."""
    words = words_at(address)
    mode = flush_denormals()
    while True:
        obey(words)
        if not may_run(words) or not fill_slots(words):
            break
        call_at(words[w.RUN_PULSE], address)
    restore_denormals(mode)


@entry("line.next_pulse", 1, types.int64)
def next_pulse(address):
    """Whether a pulse is there, now in the slots, for Python to compute."""
    words = words_at(address)
    obey(words)
    if not may_run(words) or not fill_slots(words):
        return 0
    words[w.BEGUN_NS] = now_ns(words)
    return 1


@entry("line.order", 4)
def give_order(address, order, first, second):
    """A command for ``obey``; ``COMMAND`` is NONE again when it is done."""
    words = words_at(address)
    words[w.FIRST] = first
    words[w.SECOND] = second
    store(words, w.COMMAND, order)
    if words[w.WAKE] >= 0:
        set_event(words[w.WAKE])


@entry("line.take_back", 2, types.int64)
def take_back(address, order):
    """Take a command back; whether nobody had begun to obey."""
    return 1 if replace(words_at(address), w.COMMAND, order, w.NONE) else 0


@entry("line.obey", 1)
def obey_now(address):
    """``obey``, where nobody computes."""
    obey(words_at(address))


@entry("line.work", 1)
def work(address):
    """A worker's life: until STOP is set, ``pump`` whenever the event is."""
    words = words_at(address)
    while load(words, w.STOP) == 0:
        call_at(words[w.PUMP], address)
        wait_event(words[w.WAIT])


@entry("line.call", 2)
def call_line(function, address):
    """``pump`` or ``run_pulse`` of a line, for Python."""
    call_at(function, address)
