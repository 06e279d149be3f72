# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""What becomes of a pulse: sound in the ring of output, and a record for Python."""

from pulse.jit.address import bytes_at, doubles_at, floats_at, words_at
from pulse.jit.pointer import Pointer
from pulse.jit.raw import as_i64, as_u8, move_bytes
from pulse.jit.registry import device
from streaming.native import control_block as cb
from streaming.native.device_side import FLOAT, now_ns, position, underrun_compensation
from streaming.native.drift import rate_correction
from streaming.native.mixing import delayed, faded, finite, spread
from streaming.native.primitives import load, store
from streaming.native.pulse_in import stream_at
from streaming.native.resample import feed, produce, ready, tune


@device
def mix(control: Pointer) -> None:
    """The model's sound and the input, which has waited as long as the model's, by their gains."""
    pulse, gains = control[cb.PULSE], floats_at(control[cb.GAINS])
    gains[4] = gains[2]
    gains[5] = gains[3]
    for s in range(control[cb.STREAMS]):
        stream = stream_at(control, s)
        instance = words_at(control[cb.INSTANCES]) + s * cb.INSTANCE_FIELDS
        sound, dry = floats_at(instance[cb.SOUND_OUT]), floats_at(stream[cb.DRY])
        move_bytes(as_u8(dry), bytes_at(stream[cb.SLOT_IN]), pulse * FLOAT)
        stream[cb.DRY_PLACE] = delayed(
            dry, pulse, floats_at(stream[cb.DRY_DELAY_LINE]), stream[cb.DRY_FRAMES], stream[cb.DRY_PLACE]
        )
        control[cb.NONFINITE] = control[cb.NONFINITE] + finite(sound, pulse)
        faded(sound, dry, gains, pulse)
    gains[0] = gains[4]
    gains[1] = gains[5]


@device
def send(control: Pointer) -> None:
    """The mixed pulse into the ring of output."""
    written, capacity, channels = control[cb.OUT_WRITTEN], control[cb.OUT_FRAMES], control[cb.OUT_CHANNELS]
    streams, made = control[cb.STREAMS], control[cb.PULSE]
    ring = floats_at(control[cb.OUT_RING])
    for s in range(streams):
        stream = stream_at(control, s)
        instance = words_at(control[cb.INSTANCES]) + s * cb.INSTANCE_FIELDS
        sound, copies = floats_at(instance[cb.SOUND_OUT]), channels if streams == 1 else 1
        if stream[cb.OUT_RESAMPLER] == 0:
            spread(ring, capacity, written, channels, s, copies, sound, made)
        else:
            resampler = words_at(stream[cb.OUT_RESAMPLER])
            feed(resampler, sound, 1, control[cb.PULSE])
            made = ready(resampler)
            done = 0
            while done < made:
                piece = min(made - done, control[cb.LARGEST])
                produce(resampler, floats_at(control[cb.SCRATCH]), 1, piece)
                spread(
                    ring, capacity, written + done, channels, s, copies, floats_at(control[cb.SCRATCH]), piece
                )
                done += piece
    store(control, cb.OUT_WRITTEN, written + made)
    if control[cb.DRIFT] != 0 and underrun_compensation(control) == 0:
        follow_clocks(control, made)


@device
def follow_clocks(control: Pointer, made: int) -> None:
    """Tune the last resamplers so that frames stay in the pipeline as long as they should; so many were just written.

    Where both devices are, is reckoned by the time, so that it makes no difference where in a block they are now.
    """
    now, sides = now_ns(control), control + cb.SIDES
    came = position(sides, now, control[cb.IN_RATE])
    went = position(sides + cb.SIDE_FIELDS, now, control[cb.OUT_RATE])
    if came < 0 or went < 0:
        return
    before = (came - control[cb.IN_READ]) * control[cb.OUT_RATE] / control[cb.IN_RATE]
    adjust = rate_correction(
        doubles_at(control[cb.DRIFT]),
        before + control[cb.OUT_WRITTEN] - went - control[cb.GROWN],
        made,
        control[cb.OUT_RATE],
    )
    for s in range(control[cb.STREAMS]):
        stream = stream_at(control, s)
        tune(words_at(stream[cb.OUT_RESAMPLER]), adjust)


@device
def keep_record(control: Pointer, arrived: int, done: int) -> None:
    """All outputs of the pulse for Python; where it does not take them they are lost, and counted."""
    written, count = control[cb.RECORDS_WRITTEN], control[cb.RECORD_COUNT]
    if written - load(control, cb.RECORDS_READ) >= count:
        control[cb.RECORDS_LOST] = control[cb.RECORDS_LOST] + 1
        return
    place = bytes_at(control[cb.RECORDS] + (written & (count - 1)) * control[cb.RECORD_BYTES])
    header, size = as_i64(place), control[cb.OUTPUT_BYTES]
    header[0] = control[cb.PULSES]
    header[1] = arrived
    header[2] = done
    header[3] = control[cb.LOADS]
    header[4] = control[cb.LOADED] + control[cb.PULSES]
    for s in range(control[cb.STREAMS]):
        instance = words_at(control[cb.INSTANCES]) + s * cb.INSTANCE_FIELDS
        move_bytes(place + (cb.RECORD_HEADER + s * size), bytes_at(instance[cb.SLOT_OUT]), size)
    store(control, cb.RECORDS_WRITTEN, written + 1)
