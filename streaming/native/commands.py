# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""Apply the waiting command of Python, if any, between two pulses."""

from pulse.jit.entries import entry
from pulse.jit.events import set_event
from pulse.jit.language.address import bytes_at
from pulse.jit.language.atomics import compare_exchange, load, store
from pulse.jit.language.raw import fill_bytes, move_bytes
from pulse.jit.registry import device
from pulse.jit.rows.fields import FLOAT_BYTES
from streaming.native import control_block as cb
from streaming.native.control_block import ControlBlock, control_at, instances_at
from streaming.native.device_side import delay_from_underruns
from streaming.native.drift import drift_at


@device
def restart(control: ControlBlock) -> None:
    """Prepare to reopen a device, so that its output has the same delay as at the start.

    With one clock, the delay is unchanged. Otherwise the output ring is cut or filled with silence, and no underrun
    remains to be compensated.
    """
    control.anchor = control.frames_in
    control.anchor_position = control.in_written
    control.input_side.last_ns = control.input_side.block_time_ns = 0
    control.output_side.last_ns = control.output_side.block_time_ns = 0
    if control.drift == 0:
        return
    drift, rate = drift_at(control.drift), control.rate_out_hz
    waiting = (control.in_written - control.in_read) * rate / control.rate_in_hz
    waiting += control.filled_frames * rate / control.rate_hz
    surplus = (
        control.out_written
        - control.out_read
        - int(drift.target_frames + control.delay_growth_frames - waiting + 0.5)
    )
    if surplus > 0:
        control.frames_cut += surplus
        control.out_read += surplus
    ring, channels = control.out_ring, control.out_channels
    for _ in range(-surplus):
        index = control.out_written & (control.out_ring_frames - 1)
        fill_bytes(bytes_at(ring + index * channels * FLOAT_BYTES), 0, channels * FLOAT_BYTES)
        control.out_written += 1
        control.initial_frames += 1
    control.frames_before_restart += delay_from_underruns(control)
    drift.delay_frames = drift.target_frames


@device
def apply_command(control: ControlBlock) -> None:
    """Apply the waiting command of Python, if any, between two pulses."""
    command = load(control, "command")
    if (
        command == cb.NONE
        or command == cb.TAKEN
        or not compare_exchange(control, "command", command, cb.TAKEN)
    ):
        return
    if command == cb.SWAP:
        control.priming = control.argument_number
        store(control, "next_instances", control.argument_memory)
    elif command == cb.RESTART:
        restart(control)
    else:
        address = control.argument_memory
        control.saved_state_pulses = instances_at(control.instances).pulses_run
        for s in range(control.stream_count):
            instance = instances_at(control.instances)[s]
            if command == cb.SAVE:
                move_bytes(bytes_at(address), bytes_at(instance.memory), instance.memory_bytes)
            else:
                move_bytes(bytes_at(instance.memory), bytes_at(address), instance.memory_bytes)
                instance.pulses_run = control.argument_number
                instance.delay_left_frames = max(
                    instance.delay_frames - control.argument_number * control.pulse_frames, 0
                )
            address += instance.memory_bytes
        if command == cb.LOAD:
            control.load_count += 1
            control.state_pulse_offset = control.argument_number - control.pulses
    store(control, "command", cb.NONE)


@entry("pipeline.command", 4)
def give_command(address, command, memory, number):
    """Pass a command to ``apply_command``; ``command`` is NONE again when it is done."""
    control = control_at(address)
    control.argument_memory = memory
    control.argument_number = number
    store(control, "command", command)
    if control.wake >= 0:
        set_event(control.wake)


@entry("pipeline.withdraw_command", 2, returns="int")
def withdraw_command(address, command):
    """Withdraw a command; return whether it had not been started."""
    return 1 if compare_exchange(control_at(address), "command", command, cb.NONE) else 0


@entry("pipeline.apply", 1)
def apply_now(address):
    """Run ``apply_command`` while no pulses are computed."""
    apply_command(control_at(address))
