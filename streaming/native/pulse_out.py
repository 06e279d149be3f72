"""Pass on the outputs of a pulse: sound to the output ring, and a record for Python."""

from pulse.jit.language.address import bytes_at, floats_at
from pulse.jit.language.atomics import load, store
from pulse.jit.language.raw import move_bytes
from pulse.jit.registry import device
from pulse.jit.rows.pointer import Pointer
from streaming.native.control_block import (
    RECORD_HEADER_BYTES,
    ControlBlock,
    gains_at,
    header_at,
    instances_at,
    outputs_at,
    sounds_at,
)
from streaming.native.device_side import current_position, delay_from_underruns, now_ns, underrun_compensation
from streaming.native.drift import drift_at, rate_correction
from streaming.native.mixing import copy_samples, delay, fade, replace_nonfinite, write_channels
from streaming.native.resample import feed, produce, ready_outputs, resampler_at, tune


@device
def samples_of(control: ControlBlock, index: int) -> Pointer:
    """Return what the model plays on a channel; the channels of each stream follow each other."""
    instance = instances_at(control.instances)[index // control.output_count]
    return floats_at(sounds_at(instance.sounds)[index % control.output_count].samples)


@device
def mix(control: ControlBlock) -> None:
    """Mix the model's sound with the equally delayed input, by their gains."""
    pulse, gains = control.pulse_frames, gains_at(control.gains)
    gains.next_model, gains.next_bypass = gains.wanted_model, gains.wanted_bypass
    for index in range(control.stream_count * control.output_count):
        output, samples = outputs_at(control.outputs)[index], samples_of(control, index)
        dry = floats_at(output.dry)
        copy_samples(dry, 1, floats_at(output.dry_slot), output.dry_step, pulse)
        output.dry_index = delay(
            dry, pulse, floats_at(output.dry_delay_line), output.dry_frames, output.dry_index
        )
        control.nonfinite += replace_nonfinite(samples, pulse)
        fade(samples, dry, gains, pulse)
    gains.model, gains.bypass = gains.next_model, gains.next_bypass


@device
def write_output(control: ControlBlock) -> None:
    """Write the mixed pulse to the output ring; a single channel goes to all channels of the device."""
    written, capacity, channels = control.out_written, control.out_ring_frames, control.out_channels
    count, produced = control.stream_count * control.output_count, control.pulse_frames
    ring, copies = floats_at(control.out_ring), channels if count == 1 else 1
    for index in range(count):
        output, samples = outputs_at(control.outputs)[index], samples_of(control, index)
        if output.resampler == 0:
            write_channels(ring, capacity, written, channels, index, copies, samples, produced)
        else:
            resampler = resampler_at(output.resampler)
            feed(resampler, samples, 1, control.pulse_frames)
            produced = ready_outputs(resampler)
            done = 0
            while done < produced:
                piece = min(produced - done, control.piece_frames)
                produce(resampler, floats_at(control.scratch), 1, piece)
                write_channels(
                    ring, capacity, written + done, channels, index, copies, floats_at(control.scratch), piece
                )
                done += piece
    store(control, "out_written", written + produced)
    if control.drift != 0 and underrun_compensation(control) == 0:
        follow_clocks(control, produced)


@device
def follow_clocks(control: ControlBlock, produced: int) -> None:
    """Tune the last resamplers so that the delay of the pipeline stays constant; ``produced`` frames were just written.

    The positions of both devices are extrapolated to the present, so that their block boundaries do not matter.
    """
    now = now_ns(control)
    captured = current_position(control.input_side, now, control.rate_in_hz)
    played = current_position(control.output_side, now, control.rate_out_hz)
    if captured < 0 or played < 0:
        return
    waiting = (captured - control.in_read) * control.rate_out_hz / control.rate_in_hz
    # With the policy ``wait``, late frames stay late; with other policies there are none here.
    late_frames = max(delay_from_underruns(control), 0)
    adjust = rate_correction(
        drift_at(control.drift),
        waiting + control.out_written - played - control.delay_growth_frames - late_frames,
        produced,
        control.rate_out_hz,
    )
    for index in range(control.stream_count * control.output_count):
        tune(resampler_at(outputs_at(control.outputs)[index].resampler), adjust)


@device
def keep_record(control: ControlBlock, arrived: int, done: int) -> None:
    """Write all outputs of the pulse to a record for Python; if the ring of records is full, count them as lost."""
    written, count = control.records_written, control.record_count
    if written - load(control, "records_read") >= count:
        control.records_lost += 1
        return
    address = control.records + (written & (count - 1)) * control.record_bytes
    header, size = header_at(address), control.output_bytes
    header.pulse = control.pulses
    header.arrived_ns, header.ready_ns = arrived, done
    header.load_count, header.state_pulses = control.load_count, control.state_pulse_offset + control.pulses
    for s in range(control.stream_count):
        instance = instances_at(control.instances)[s]
        move_bytes(bytes_at(address + RECORD_HEADER_BYTES + s * size), bytes_at(instance.slot_out), size)
    store(control, "records_written", written + 1)
