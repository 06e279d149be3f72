"""The model: a pulse of every stream, and the change from one program to another."""

from pulse.jit.language.address import bytes_at, floats_at
from pulse.jit.language.atomics import store
from pulse.jit.language.raw import as_u8, fill_bytes
from pulse.jit.registry import device
from pulse.jit.rows.fields import FLOAT_BYTES
from pulse.program.machine.packed import packed_call_at, packed_step, take_faults
from streaming.native.control_block import ControlBlock, instances_at, sounds_at
from streaming.native.device_side import now_ns
from streaming.native.histogram import count_time, histogram_at
from streaming.native.mixing import copy_samples, cross_fade, delay


@device
def run_instances(control: ControlBlock, instances: int) -> None:
    """Run one pulse of the model for every stream; the frames of the model's delay become silence."""
    pulse = control.pulse_frames
    for s in range(control.stream_count):
        instance = instances_at(instances)[s]
        call = packed_call_at(instance.packed)
        packed_step(call, control.slots + s * control.slot_bytes, instance.slot_out)
        faults = take_faults(call)
        if instances == control.instances:
            control.faults += faults
        instance.pulses_run += 1
        invalid = min(instance.delay_left_frames, pulse)
        for channel in range(control.output_count):
            sound = sounds_at(instance.sounds)[channel]
            samples = floats_at(sound.samples)
            copy_samples(samples, 1, floats_at(sound.source), sound.step, pulse)
            if invalid > 0:
                fill_bytes(as_u8(samples), 0, invalid * FLOAT_BYTES)
            sound.delay_line_index = delay(
                samples, pulse, floats_at(sound.delay_line), sound.delay_line_frames, sound.delay_line_index
            )
        instance.delay_left_frames -= max(invalid, 0)


@device
def silence_instances(control: ControlBlock) -> None:
    """Output silence for a pulse that is not computed."""
    for s in range(control.stream_count):
        instance = instances_at(control.instances)[s]
        fill_bytes(bytes_at(instance.slot_out), 0, control.output_bytes)
        for channel in range(control.output_count):
            sound = sounds_at(instance.sounds)[channel]
            fill_bytes(bytes_at(sound.samples), 0, control.pulse_frames * FLOAT_BYTES)


@device
def change_instances(control: ControlBlock) -> None:
    """Cross-fade to the next instances in this pulse, if they are primed."""
    control.priming -= 1
    if control.priming > 0:
        return
    for s in range(control.stream_count):
        old = instances_at(control.instances)[s]
        new = instances_at(control.next_instances)[s]
        for channel in range(control.output_count):
            cross_fade(
                floats_at(sounds_at(new.sounds)[channel].samples),
                floats_at(sounds_at(old.sounds)[channel].samples),
                control.pulse_frames,
            )
    control.instances = control.next_instances
    store(control, "next_instances", 0)  # after the other: Python reads this one first


@device
def run_model(control: ControlBlock, start: int, arrived: int) -> None:
    """Run the model, and the next instances if any."""
    current, runs = control.instances, control.instances
    while runs != 0:  # at most twice: two calls of ``run_instances`` would compile it twice
        run_instances(control, runs)
        runs = control.next_instances if runs == current else 0
    if control.next_instances != 0:
        change_instances(control)
    computed = now_ns(control)
    count_time(histogram_at(control.compute_times), computed - start)
    count_time(histogram_at(control.waiting_times), start - arrived)
    control.compute_ns += computed - start
    control.expected_ns = min(computed - start, control.last_compute_ns)
    control.last_compute_ns = computed - start
