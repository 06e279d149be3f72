# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""The loop over pulses: blocks from a device through a model, and back. The fields are in ``control_block``.

These functions run in the worker, or in the callback if it computes.
"""

from pulse.jit.entries import callback, entry
from pulse.jit.events import wait_event
from pulse.jit.language.atomics import load, store
from pulse.jit.language.cpu_registers import flush_denormals, restore_denormals
from pulse.jit.language.foreign import c_signature, call_address
from pulse.jit.registry import device
from streaming.native import control_block as cb
from streaming.native.commands import apply_command
from streaming.native.control_block import ControlBlock, control_at, instances_at
from streaming.native.device_side import now_ns, underrun_compensation
from streaming.native.histogram import count_time, histogram_at
from streaming.native.instances import run_model, silence_instances
from streaming.native.pulse_in import arrival_of, fill_slots
from streaming.native.pulse_out import keep_record, mix, write_output


@device
def is_too_late(control: ControlBlock, start_ns: int) -> bool:
    """Return whether no frame of the pulse in the slots can still be played if the pulse takes the expected time."""
    side = control.input_side if control.drift == 0 else control.output_side
    frames_to_end = (
        control.out_written
        + control.max_output_frames
        - load(control, "out_read")
        - underrun_compensation(control)
    )
    last_block_at_ns, block_frames = load(side, "block_time_ns"), control.block_frames
    if frames_to_end <= 0 or last_block_at_ns == 0:
        return frames_to_end <= 0
    blocks = (frames_to_end + block_frames - 1) // block_frames
    return start_ns + control.expected_ns > last_block_at_ns + blocks * control.block_ns


@callback("pipeline.run_pulse", c_signature(None, "i64"))
def run_pulse(address):
    """Run the model on the pulse in the slots, or drop it; pass its outputs on, and record the time."""
    control = control_at(address)
    arrived = arrival_of(control, control.begun_ns)
    if control.pulse_dropped != 0:
        silence_instances(control)
        control.expected_ns = control.expected_ns // 2
        store(control, "pulses_dropped", control.pulses_dropped + 1)
    else:
        run_model(control, control.begun_ns, arrived)
    if control.out_channels > 0:
        mix(control)
        write_output(control)
    done = now_ns(control)
    if control.pulse_dropped == 0:
        count_time(histogram_at(control.total_times), done - arrived)
        if done - arrived > control.deadline_ns:
            control.missed += 1
    control.filled_frames = 0
    if control.records != 0:
        keep_record(control, arrived, done)
    store(control, "pulses", control.pulses + 1)


@device
def end_if_late(control: ControlBlock) -> None:
    """End a run with the policy ``abort`` if silence was played."""
    if control.status == cb.RUNNING and control.policy == cb.ABORT and load(control, "frames_silent") > 0:
        store(control, "status", cb.WAS_LATE)


@device
def has_space(control: ControlBlock) -> bool:
    """Return whether the output ring has space for the next pulse."""
    backlog = control.out_written - load(control, "out_read")
    return control.out_channels == 0 or backlog + control.max_output_frames <= control.out_ring_frames


@device
def is_at_limit(control: ControlBlock) -> bool:
    """Return whether the model, or its successor, may run no further pulse."""
    instance, successor = instances_at(control.instances), instances_at(control.next_instances)
    reached = instance.pulses_run >= instance.max_pulses
    if control.next_instances != 0:
        reached = reached or successor.pulses_run >= successor.max_pulses
    return reached


@device
def take_pulse(control: ControlBlock) -> bool:
    """Apply a command and fill the slots with the next pulse; return whether it is complete and may run."""
    apply_command(control)
    end_if_late(control)
    if control.status != cb.RUNNING or not has_space(control) or not fill_slots(control):
        return False
    if is_at_limit(control):
        store(control, "status", cb.LIMIT_REACHED)
        return False
    control.begun_ns = now_ns(control)
    drops = control.policy == cb.DROP_OLDEST and control.out_channels > 0
    control.pulse_dropped = 1 if drops and is_too_late(control, control.begun_ns) else 0
    return True


@callback("pipeline.pump", c_signature(None, "i64"))
def pump(address):
    """Run all complete pulses while the ring has space for their output."""
    control = control_at(address)
    mode = flush_denormals()
    while True:  # ``while take_pulse`` would compile it twice
        if not take_pulse(control):
            break
        call_address(control.run_pulse, address)
    restore_denormals(mode)


@entry("pipeline.next_pulse", 1, returns="int")
def next_pulse(address):
    """Return whether Python has a pulse to compute; dropped pulses are skipped."""
    control = control_at(address)
    while True:
        if not take_pulse(control):
            return 0
        if control.pulse_dropped == 0:
            return 1
        call_address(control.run_pulse, address)


@entry("pipeline.work", 1)
def work(address):
    """Run the loop of a worker: call ``pump`` each time that the event is set, until ``stop`` is set."""
    control = control_at(address)
    while load(control, "stop") == 0:
        call_address(control.pump, address)
        wait_event(control.wait)


@entry("pipeline.call", 2)
def call_pipeline(function, address):
    """Call ``pump`` or ``run_pulse`` of a pipeline from Python."""
    call_address(function, address)
