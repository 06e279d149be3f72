# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""The pipeline: blocks from a device through a model, and back. Fields are those of ``control_block``.

What is here belongs to the worker, or to the callback where that computes.
"""

from numba.core import types

from pulse.jit.address import call_at, words_at
from pulse.jit.entries import callback, entry
from pulse.jit.pointer import Pointer
from pulse.jit.registry import device
from pulse.program.machine import flush_denormals, restore_denormals
from streaming.native import control_block as cb
from streaming.native.commands import apply
from streaming.native.device_side import now_ns, underrun_compensation
from streaming.native.histogram import record
from streaming.native.instances import compute, silence_instances
from streaming.native.primitives import load, store, wait_event
from streaming.native.pulse_in import arrival_of, fill_slots
from streaming.native.pulse_out import keep_record, mix, send


@device
def is_too_late(control: Pointer, begun: int) -> bool:
    """Whether nothing of the pulse in the slots would be heard any more, if it takes what is expected."""
    side = control + (cb.SIDES if control[cb.DRIFT] == 0 else cb.SIDES + cb.SIDE_FIELDS)
    until_its_end = (
        control[cb.OUT_WRITTEN]
        + control[cb.ROOM]
        - load(control, cb.OUT_READ)
        - underrun_compensation(control)
    )
    at, block = load(side, cb.BLOCK_TIME_NS), control[cb.BLOCK]
    if until_its_end <= 0 or at == 0:
        return until_its_end <= 0
    blocks = (until_its_end + block - 1) // block
    return begun + control[cb.EXPECTED_NS] > at + blocks * control[cb.BLOCK_NS]


@callback("pipeline.run_pulse", types.void(types.int64))
def run_pulse(address):
    """There is a pulse: run the model, or leave it out, pass its outputs on, and account for the time."""
    control = words_at(address)
    arrived = arrival_of(control, control[cb.BEGUN_NS])
    if control[cb.LEFT_OUT] != 0:
        silence_instances(control)
        control[cb.EXPECTED_NS] = control[cb.EXPECTED_NS] // 2
        store(control, cb.PULSES_DROPPED, control[cb.PULSES_DROPPED] + 1)
    else:
        compute(control, control[cb.BEGUN_NS], arrived)
    if control[cb.OUT_CHANNELS] > 0:
        mix(control)
        send(control)
    done = now_ns(control)
    if control[cb.LEFT_OUT] == 0:
        record(words_at(control[cb.TOTAL_TIMES]), done - arrived)
        if done - arrived > control[cb.DEADLINE_NS]:
            control[cb.MISSED] = control[cb.MISSED] + 1
    control[cb.FILLED] = 0
    if control[cb.RECORDS] != 0:
        keep_record(control, arrived, done)
    store(control, cb.PULSES, control[cb.PULSES] + 1)


@device
def may_run(control: Pointer) -> bool:
    """Whether nothing has ended the run, and what the next pulse adds has room."""
    if control[cb.POLICY] == cb.ABORTS and load(control, cb.FRAMES_SILENT) > 0:
        store(control, cb.STATUS, cb.WAS_LATE)
    backlog = control[cb.OUT_WRITTEN] - load(control, cb.OUT_READ)
    has_room = control[cb.OUT_CHANNELS] == 0 or backlog + control[cb.ROOM] <= control[cb.OUT_FRAMES]
    return control[cb.STATUS] == cb.RUNNING and has_room


@device
def is_at_limit(control: Pointer) -> bool:
    """Whether the model, or the one that is to take over, may have no further pulse."""
    instance, successor = words_at(control[cb.INSTANCES]), words_at(control[cb.NEXT_INSTANCES])
    reached = instance[cb.RAN] >= instance[cb.LIMIT]
    if control[cb.NEXT_INSTANCES] != 0:
        reached = reached or successor[cb.RAN] >= successor[cb.LIMIT]
    return reached


@device
def has_pulse(control: Pointer) -> bool:
    """Apply a command, and take the next pulse into the slots; whether it is there, and may be run."""
    apply(control)
    if not may_run(control) or not fill_slots(control):
        return False
    if is_at_limit(control):
        store(control, cb.STATUS, cb.LIMIT_REACHED)
        return False
    control[cb.BEGUN_NS] = now_ns(control)
    drops = control[cb.POLICY] == cb.DROPS and control[cb.OUT_CHANNELS] > 0
    control[cb.LEFT_OUT] = 1 if drops and is_too_late(control, control[cb.BEGUN_NS]) else 0
    return True


@callback("pipeline.pump", types.void(types.int64))
def pump(address):
    """Run all pulses that are there and have room."""
    control = words_at(address)
    mode = flush_denormals()
    while True:  # ``while has_pulse`` would compile that twice
        if not has_pulse(control):
            break
        call_at(control[cb.RUN_PULSE], address)
    restore_denormals(mode)


@entry("pipeline.next_pulse", 1, types.int64)
def next_pulse(address):
    """Whether a pulse is there to be computed, by Python; those that are left out are passed over."""
    control = words_at(address)
    while True:
        if not has_pulse(control):
            return 0
        if control[cb.LEFT_OUT] == 0:
            return 1
        call_at(control[cb.RUN_PULSE], address)


@entry("pipeline.work", 1)
def work(address):
    """A worker's life: until STOP is set, ``pump`` whenever the event is."""
    control = words_at(address)
    while load(control, cb.STOP) == 0:
        call_at(control[cb.PUMP], address)
        wait_event(control[cb.WAIT])


@entry("pipeline.call", 2)
def call_pipeline(function, address):
    """``pump`` or ``run_pulse`` of a pipeline, for Python."""
    call_at(function, address)
