# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""Slots: the places of packed pulses of several streams, and the worker that runs these.

The queue of a stream has ``depth`` slots, one for each pulse, and the order in which filled ones run. The event loop's
thread fills slots, submits them, and may drop the oldest one that has not begun; the worker runs one pulse of each
queue in turn. The thread that increments ``begun`` owns the pulse.
"""

import numpy as np
from numpy.typing import NDArray

from pulse.jit.entries import entry
from pulse.jit.events import set_event, wait_event
from pulse.jit.language.address import address_of, words_at
from pulse.jit.language.atomics import compare_exchange, fence, load, store
from pulse.jit.language.structs import Struct, numbers, struct_at
from pulse.jit.registry import device, routine
from pulse.jit.rows.fields import starts_line
from pulse.program.machine.packed import fault_count, packed_call_at, packed_step
from streaming.native.monotonic_clock import monotonic_ns


class WorkerBlock(Struct):
    """A worker; each cache line has one writer.

    wake, wait  descriptors: to wake it, and to wait in it
    table       address of the ``QueueTable``
    stop        1: the worker ends
    sleeping    1: the worker sleeps until it is woken
    current     address of the queue that it is processing, or 0
    """

    wake: int
    wait: int
    table: int
    stop: int
    sleeping: int = starts_line()
    current: int


class QueueTable(Struct):
    """The queues of a worker.

    count   the number of entries
    queues  the addresses of the queues; 0: a free entry
    """

    count: int
    queues: NDArray[np.int64] = numbers()


class Queue(Struct):
    """The pulses of one stream.

    depth      the number of slots
    packed     address of the ``MachineCall``
    event      descriptor that wakes the event loop
    order      address of ``depth`` numbers of slots: the submitted ones, in order
    slots      address of the slots
    submitted  the number of pulses that were submitted
    begun      the number of pulses that the worker has taken or that were dropped; two writers
    finished   the number of pulses that are done
    listening  1: set the event when a pulse is finished; two writers
    """

    depth: int
    packed: int
    event: int
    order: int
    slots: int
    submitted: int
    begun: int = starts_line()
    finished: int = starts_line()
    listening: int = starts_line()


class SlotBlock(Struct):
    """The packed bytes of a pulse, its times, and the number of faults so far."""

    inputs: int
    outputs: int
    started_ns: int
    ended_ns: int
    faults: int


worker_at, table_at, queue_at = struct_at(WorkerBlock), struct_at(QueueTable), struct_at(Queue)
slots_at = struct_at(SlotBlock)


@routine
def _run_next(queue: Queue) -> bool:
    """Run the oldest waiting pulse; return whether there was one."""
    started, order = queue.begun, words_at(queue.order)
    if started == load(queue, "submitted"):
        return False
    slot = slots_at(queue.slots)[order[started % queue.depth]]
    if compare_exchange(queue, "begun", started, started + 1):
        slot.started_ns = monotonic_ns()
        packed_step(packed_call_at(queue.packed), slot.inputs, slot.outputs)
        slot.ended_ns = monotonic_ns()
        slot.faults = fault_count(packed_call_at(queue.packed))
        store(queue, "finished", queue.finished + 1)
        fence()
        if load(queue, "listening") == 1:
            store(queue, "listening", 0)
            set_event(queue.event)
    return True


@device
def _run_round(worker: WorkerBlock) -> bool:
    """Run one pulse of each queue; return whether there was any.

    The worker announces a queue before it uses it, then checks that the queue is still in the table: a queue that has
    left while the worker was elsewhere is never used again.
    """
    ran = False
    address = load(worker, "table")
    table = table_at(address)
    for index in range(table.count):
        queue = load(table.queues, index)
        if queue != 0:
            store(worker, "current", queue)
            fence()
            if load(worker, "table") == address and load(table.queues, index) == queue:
                ran = _run_next(queue_at(queue)) or ran
    store(worker, "current", 0)
    return ran


@entry("slots.work", 1)
def work(address):
    """Run the loop of a worker: run pulses until ``stop`` is set, and sleep if there are none."""
    worker = worker_at(address)
    while load(worker, "stop") == 0:
        if _run_round(worker):
            continue
        store(worker, "sleeping", 1)
        fence()
        if not _run_round(worker) and load(worker, "stop") == 0:
            wait_event(worker.wait)
        store(worker, "sleeping", 0)


@device
def _wake(worker: WorkerBlock) -> None:
    fence()
    if load(worker, "sleeping") == 1:
        store(worker, "sleeping", 0)
        set_event(worker.wake)


@entry("slots.join", 4, keeps_gil=True)
def join(worker_address, table_address, index, queue_address):
    """Enter a queue in a table, and let the worker use that table."""
    store(table_at(table_address).queues, index, queue_address)
    store(worker_at(worker_address), "table", table_address)


@entry("slots.submit", 3, keeps_gil=True)
def submit(worker_address, queue_address, slot):
    """Append a filled slot to the order."""
    worker, queue = worker_at(worker_address), queue_at(queue_address)
    submitted, order = queue.submitted, words_at(queue.order)
    order[submitted % queue.depth] = slot
    store(queue, "submitted", submitted + 1)
    _wake(worker)


@entry("slots.drop", 1, returns="int", keeps_gil=True)
def drop(queue_address):
    """Drop the oldest pulse that has not begun; return its slot, or -1 without one."""
    queue = queue_at(queue_address)
    started, order = load(queue, "begun"), words_at(queue.order)
    while started < queue.submitted:
        slot = order[started % queue.depth]
        if compare_exchange(queue, "begun", started, started + 1):
            return slot
        started = load(queue, "begun")
    return -1


@entry("slots.finished", 1, returns="int", keeps_gil=True)
def count_finished(queue_address):
    """Return how many pulses of a queue have run."""
    return load(queue_at(queue_address), "finished")


@entry("slots.listen", 1, returns="int", keeps_gil=True)
def listen(queue_address):
    """Request the event for the next finished pulse; return how many have run."""
    queue = queue_at(queue_address)
    store(queue, "listening", 1)
    fence()
    return load(queue, "finished")


@entry("slots.clear", 1, keeps_gil=True)
def clear(descriptor):
    """Clear an event, whose descriptor must be non-blocking."""
    wait_event(descriptor)


@entry("slots.leave", 3, returns="int", keeps_gil=True)
def leave(worker_address, index, queue_address):
    """Drop all waiting pulses and leave the table; return whether the worker still uses the queue's memory."""
    worker, queue = worker_at(worker_address), queue_at(queue_address)
    started = load(queue, "begun")
    while started < queue.submitted and not compare_exchange(queue, "begun", started, queue.submitted):
        started = load(queue, "begun")
    store(table_at(load(worker, "table")).queues, index, 0)
    fence()
    return load(worker, "current") == address_of(queue)


@entry("slots.is_at", 2, returns="int", keeps_gil=True)
def is_at(worker_address, queue_address):
    """Return whether the worker is processing a queue."""
    return load(worker_at(worker_address), "current") == queue_address


@entry("slots.stop", 1, keeps_gil=True)
def stop(worker_address):
    """End the worker after its present pulse."""
    worker = worker_at(worker_address)
    store(worker, "stop", 1)
    set_event(worker.wake)
