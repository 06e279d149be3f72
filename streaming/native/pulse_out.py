# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""What becomes of a pulse: sound in the ring of output, and a record for Python."""

from pulse.program.kernels.address import bytes_at, doubles_at, floats_at, words_at
from pulse.program.kernels.pointer import Pointer
from pulse.program.kernels.raw import as_i64, as_u8, move_bytes
from pulse.program.kernels.registry import device
from streaming.native import line_words as w
from streaming.native.device_side import FLOAT, now_ns, owed, position
from streaming.native.drift import corrected
from streaming.native.mixing import delayed, faded, finite, spread
from streaming.native.primitives import load, store
from streaming.native.pulse_in import stream_at
from streaming.native.resample import feed, produce, ready, tune


@device
def mix(words: Pointer) -> None:
    """The model's sound and the input, which has waited as long as the model's, by their gains."""
    pulse, gains = words[w.PULSE], floats_at(words[w.GAINS])
    gains[4] = gains[2]
    gains[5] = gains[3]
    for s in range(words[w.STREAMS]):
        stream = stream_at(words, s)
        instance = words_at(words[w.INSTANCES]) + s * w.INSTANCE_WORDS
        sound, dry = floats_at(instance[w.HEARD]), floats_at(stream[w.DRY])
        move_bytes(as_u8(dry), bytes_at(stream[w.SLOT_IN]), pulse * FLOAT)
        stream[w.DRY_PLACE] = delayed(
            dry, pulse, floats_at(stream[w.DRY_DELAY_LINE]), stream[w.DRY_FRAMES], stream[w.DRY_PLACE]
        )
        words[w.NONFINITE] = words[w.NONFINITE] + finite(sound, pulse)
        faded(sound, dry, gains, pulse)
    gains[0] = gains[4]
    gains[1] = gains[5]


@device
def send(words: Pointer) -> None:
    """The mixed pulse into the ring of output."""
    written, capacity, channels = words[w.OUT_WRITTEN], words[w.OUT_FRAMES], words[w.OUT_CHANNELS]
    streams, made = words[w.STREAMS], words[w.PULSE]
    ring = floats_at(words[w.OUT_RING])
    for s in range(streams):
        stream = stream_at(words, s)
        instance = words_at(words[w.INSTANCES]) + s * w.INSTANCE_WORDS
        sound, copies = floats_at(instance[w.HEARD]), channels if streams == 1 else 1
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
                spread(
                    ring, capacity, written + done, channels, s, copies, floats_at(words[w.SCRATCH]), piece
                )
                done += piece
    store(words, w.OUT_WRITTEN, written + made)
    if words[w.DRIFT] != 0 and owed(words) == 0:
        follow_clocks(words, made)


@device
def follow_clocks(words: Pointer, made: int) -> None:
    """Tune the last resamplers so that frames stay in the pipeline as long as they should; so many were just written.

    Where both devices are, is reckoned by the time, so that it makes no difference where in a block they are now.
    """
    now, sides = now_ns(words), words + w.SIDES
    came = position(sides, now, words[w.IN_RATE])
    went = position(sides + w.SIDE_WORDS, now, words[w.OUT_RATE])
    if came < 0 or went < 0:
        return
    before = (came - words[w.IN_READ]) * words[w.OUT_RATE] / words[w.IN_RATE]
    adjust = corrected(
        doubles_at(words[w.DRIFT]),
        before + words[w.OUT_WRITTEN] - went - words[w.GROWN],
        made,
        words[w.OUT_RATE],
    )
    for s in range(words[w.STREAMS]):
        stream = stream_at(words, s)
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
    header[4] = words[w.LOADED] + words[w.PULSES]
    for s in range(words[w.STREAMS]):
        instance = words_at(words[w.INSTANCES]) + s * w.INSTANCE_WORDS
        move_bytes(place + (w.RECORD_HEADER + s * size), bytes_at(instance[w.SLOT_OUT]), size)
    store(words, w.RECORDS_WRITTEN, written + 1)
