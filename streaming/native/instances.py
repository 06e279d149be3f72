# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""The model: a pulse of every stream, and two programs of which one takes over."""

from pulse.jit.address import bytes_at, floats_at, words_at
from pulse.jit.atomics import store
from pulse.jit.pointer import Pointer
from pulse.jit.raw import as_u8, fill_bytes, move_bytes
from pulse.jit.registry import device
from pulse.program.packed import call_at, packed_step, take_faults
from streaming.native import control_block as cb
from streaming.native.device_side import FLOAT, now_ns
from streaming.native.histogram import record
from streaming.native.mixing import cross, delayed
from streaming.native.pulse_in import stream_at


@device
def run_instances(control: Pointer, instances: int) -> None:
    """One pulse of the model for every stream; what the model's delay makes invalid is silent."""
    pulse, sound = control[cb.PULSE], control[cb.OUT_CHANNELS] > 0
    for s in range(control[cb.STREAMS]):
        instance = words_at(instances) + s * cb.INSTANCE_FIELDS
        stream = stream_at(control, s)
        call = call_at(instance[cb.PACKED])
        packed_step(call, stream[cb.SLOT_IN], instance[cb.SLOT_OUT])
        faults = take_faults(call)
        if instances == control[cb.INSTANCES]:
            control[cb.FAULTS] = control[cb.FAULTS] + faults
        instance[cb.RAN] = instance[cb.RAN] + 1
        if sound:
            sound_out = floats_at(instance[cb.SOUND_OUT])
            move_bytes(as_u8(sound_out), bytes_at(instance[cb.SLOT_OUT] + instance[cb.SOUND]), pulse * FLOAT)
            invalid = min(instance[cb.DELAY_LEFT], pulse)
            if invalid > 0:
                fill_bytes(as_u8(sound_out), 0, invalid * FLOAT)
                instance[cb.DELAY_LEFT] = instance[cb.DELAY_LEFT] - invalid
            instance[cb.DELAY_LINE_PLACE] = delayed(
                sound_out,
                pulse,
                floats_at(instance[cb.DELAY_LINE]),
                instance[cb.DELAY_LINE_FRAMES],
                instance[cb.DELAY_LINE_PLACE],
            )


@device
def silence_instances(control: Pointer) -> None:
    """A pulse that is not computed."""
    for s in range(control[cb.STREAMS]):
        instance = words_at(control[cb.INSTANCES]) + s * cb.INSTANCE_FIELDS
        fill_bytes(bytes_at(instance[cb.SLOT_OUT]), 0, control[cb.OUTPUT_BYTES])
        fill_bytes(bytes_at(instance[cb.SOUND_OUT]), 0, control[cb.PULSE] * FLOAT)


@device
def change_instances(control: Pointer) -> None:
    """The next instances have run along; when they are primed, fade over within this pulse."""
    control[cb.PRIMING] = control[cb.PRIMING] - 1
    if control[cb.PRIMING] > 0:
        return
    if control[cb.OUT_CHANNELS] > 0:
        for s in range(control[cb.STREAMS]):
            old = words_at(control[cb.INSTANCES]) + s * cb.INSTANCE_FIELDS
            new = words_at(control[cb.NEXT_INSTANCES]) + s * cb.INSTANCE_FIELDS
            cross(floats_at(new[cb.SOUND_OUT]), floats_at(old[cb.SOUND_OUT]), control[cb.PULSE])
    control[cb.INSTANCES] = control[cb.NEXT_INSTANCES]
    store(control, cb.NEXT_INSTANCES, 0)  # not before the other: Python asks for this one first


@device
def compute(control: Pointer, begun: int, arrived: int) -> None:
    """Run the model, for the next instances too where there are some."""
    current, runs = control[cb.INSTANCES], control[cb.INSTANCES]
    while runs != 0:
        run_instances(control, runs)
        runs = control[cb.NEXT_INSTANCES] if runs == current else 0
    if control[cb.NEXT_INSTANCES] != 0:
        change_instances(control)
    computed = now_ns(control)
    record(words_at(control[cb.COMPUTE_TIMES]), computed - begun)
    record(words_at(control[cb.WAITING_TIMES]), begun - arrived)
    control[cb.COMPUTE_NS] = control[cb.COMPUTE_NS] + (computed - begun)
    control[cb.EXPECTED_NS] = min(computed - begun, control[cb.LAST_COMPUTE_NS])
    control[cb.LAST_COMPUTE_NS] = computed - begun
