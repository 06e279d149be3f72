# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""The pipeline: blocks from a device through a model, and back. Words are those of ``line_words``.

What is here belongs to the worker, or to the callback where that computes.
"""

from numba.core import types

from pulse.program.kernels.address import call_at, words_at
from pulse.program.kernels.entries import callback, entry
from pulse.program.kernels.pointer import Pointer
from pulse.program.kernels.registry import device
from pulse.program.machine import flush_denormals, restore_denormals
from streaming.native import line_words as w
from streaming.native.device_side import now_ns, owed
from streaming.native.histogram import record
from streaming.native.instances import compute, silence_instances
from streaming.native.orders import obey
from streaming.native.primitives import load, store, wait_event
from streaming.native.pulse_in import arrival_of, fill_slots
from streaming.native.pulse_out import keep_record, mix, send


@device
def comes_too_late(words: Pointer, begun: int) -> bool:
    """Whether nothing of the pulse in the slots would be heard any more, if it takes what is expected."""
    side = words + (w.SIDES if words[w.DRIFT] == 0 else w.SIDES + w.SIDE_WORDS)
    until_its_end = words[w.OUT_WRITTEN] + words[w.ROOM] - load(words, w.OUT_READ) - owed(words)
    at, block = load(side, w.PLACED_NS), words[w.BLOCK]
    if until_its_end <= 0 or at == 0:
        return until_its_end <= 0
    blocks = (until_its_end + block - 1) // block
    return begun + words[w.EXPECTED_NS] > at + blocks * words[w.BLOCK_NS]


@callback("pipeline.run_pulse", types.void(types.int64))
def run_pulse(address):
    """There is a pulse: run the model, or leave it out, pass its outputs on, and account for the time."""
    words = words_at(address)
    arrived = arrival_of(words, words[w.BEGUN_NS])
    if words[w.LEFT_OUT] != 0:
        silence_instances(words)
        words[w.EXPECTED_NS] = words[w.EXPECTED_NS] // 2
        store(words, w.PULSES_DROPPED, words[w.PULSES_DROPPED] + 1)
    else:
        compute(words, words[w.BEGUN_NS], arrived)
    if words[w.OUT_CHANNELS] > 0:
        mix(words)
        send(words)
    done = now_ns(words)
    if words[w.LEFT_OUT] == 0:
        record(words_at(words[w.TOTAL_TIMES]), done - arrived)
        if done - arrived > words[w.DEADLINE_NS]:
            words[w.MISSED] = words[w.MISSED] + 1
    words[w.FILLED] = 0
    if words[w.RECORDS] != 0:
        keep_record(words, arrived, done)
    store(words, w.PULSES, words[w.PULSES] + 1)


@device
def may_run(words: Pointer) -> bool:
    """Whether nothing has ended the run, and what the next pulse adds has room."""
    if words[w.POLICY] == w.ABORTS and load(words, w.FRAMES_SILENT) > 0:
        store(words, w.STATUS, w.WAS_LATE)
    backlog = words[w.OUT_WRITTEN] - load(words, w.OUT_READ)
    has_room = words[w.OUT_CHANNELS] == 0 or backlog + words[w.ROOM] <= words[w.OUT_FRAMES]
    return words[w.STATUS] == w.RUNNING and has_room


@device
def is_at_limit(words: Pointer) -> bool:
    """Whether the model, or the one that is to take over, may have no further pulse."""
    instance, successor = words_at(words[w.INSTANCES]), words_at(words[w.NEXT_INSTANCES])
    reached = instance[w.RAN] >= instance[w.LIMIT]
    if words[w.NEXT_INSTANCES] != 0:
        reached = reached or successor[w.RAN] >= successor[w.LIMIT]
    return reached


@device
def there_is_a_pulse(words: Pointer) -> bool:
    """Obey, and take the next pulse into the slots; whether it is there, and may be run."""
    obey(words)
    if not may_run(words) or not fill_slots(words):
        return False
    if is_at_limit(words):
        store(words, w.STATUS, w.LIMIT_REACHED)
        return False
    words[w.BEGUN_NS] = now_ns(words)
    drops = words[w.POLICY] == w.DROPS and words[w.OUT_CHANNELS] > 0
    words[w.LEFT_OUT] = 1 if drops and comes_too_late(words, words[w.BEGUN_NS]) else 0
    return True


@callback("pipeline.pump", types.void(types.int64))
def pump(address):
    """Run all pulses that are there and have room."""
    words = words_at(address)
    mode = flush_denormals()
    while True:  # ``while there_is_a_pulse`` would compile that twice
        if not there_is_a_pulse(words):
            break
        call_at(words[w.RUN_PULSE], address)
    restore_denormals(mode)


@entry("pipeline.next_pulse", 1, types.int64)
def next_pulse(address):
    """Whether a pulse is there to be computed, by Python; those that are left out are passed over."""
    words = words_at(address)
    while True:
        if not there_is_a_pulse(words):
            return 0
        if words[w.LEFT_OUT] == 0:
            return 1
        call_at(words[w.RUN_PULSE], address)


@entry("pipeline.work", 1)
def work(address):
    """A worker's life: until STOP is set, ``pump`` whenever the event is."""
    words = words_at(address)
    while load(words, w.STOP) == 0:
        call_at(words[w.PUMP], address)
        wait_event(words[w.WAIT])


@entry("pipeline.call", 2)
def call_pipeline(function, address):
    """``pump`` or ``run_pulse`` of a pipeline, for Python."""
    call_at(function, address)
