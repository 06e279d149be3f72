# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""Slots: packed pulses of several streams, and the worker that runs them.

A queue of one stream has slots for ``DEPTH`` pulses and an order in which filled ones are to run. The event loop's
thread fills slots, submits them, and may drop the oldest that is not begun; the worker runs one pulse of each queue
in turn. Whoever raises ``BEGUN`` has the pulse.
"""

from numba.core import types

from pulse.jit.address import address_of, words_at
from pulse.jit.entries import entry
from pulse.jit.pointer import Pointer
from pulse.jit.registry import device, routine
from pulse.program.packed import fault_count, packed_step
from streaming.native.primitives import fence, load, monotonic_ns, replace, set_event, store, wait_event

# Words of a worker; each block has one writer and a cache line of its own.
WAKE, WAIT, TABLE, STOP = range(4)  # descriptors that wake it; address of the table; 1: end
SLEEPING, CURRENT = range(8, 10)  # 1: waits to be woken; the queue that it is at, or 0
WORKER_FIELDS = 16

# Words of a table: how many queues, then their addresses; 0 where there is none.
COUNT = 0

# Fields of a queue, then the order (DEPTH numbers of slots), then the slots.
DEPTH, PACKED, EVENT, SUBMITTED = range(4)  # EVENT: descriptor that tells the loop
BEGUN = 8  # two writers: pulses that the worker took, or that were dropped
FINISHED = 16
LISTENING = 24  # two writers; 1: set EVENT when a pulse is finished
ORDER = 32

# Words of a slot: addresses of packed bytes, when its pulse ran, and values without a result up to then.
INPUTS, OUTPUTS, STARTED_NS, ENDED_NS, FAULTS = range(5)
SLOT_FIELDS = 5


def queue_fields(depth: int) -> int:
    """How many words a queue has."""
    return ORDER + depth * (1 + SLOT_FIELDS)


def slot_at(depth: int, number: int) -> int:
    """The first word of a slot in its queue."""
    return ORDER + depth + number * SLOT_FIELDS


@device
def _nth(queue: Pointer, count: int) -> int:
    """The word of the order that belongs to the pulse of this number."""
    return ORDER + count % queue[DEPTH]


@routine
def _run_next(queue: Pointer) -> bool:
    """Run the oldest pulse that waits; whether there was one."""
    begun, depth = queue[BEGUN], queue[DEPTH]
    if begun == load(queue, SUBMITTED):
        return False
    slot = queue + (ORDER + depth + queue[_nth(queue, begun)] * SLOT_FIELDS)
    if replace(queue, BEGUN, begun, begun + 1):
        slot[STARTED_NS] = monotonic_ns()
        packed_step(words_at(queue[PACKED]), slot[INPUTS], slot[OUTPUTS])
        slot[ENDED_NS] = monotonic_ns()
        slot[FAULTS] = fault_count(words_at(queue[PACKED]))
        store(queue, FINISHED, queue[FINISHED] + 1)
        fence()
        if load(queue, LISTENING) == 1:
            store(queue, LISTENING, 0)
            set_event(queue[EVENT])
    return True


@device
def _run_round(worker: Pointer) -> bool:
    """One pulse of each queue; whether there was any.

    Before it touches a queue the worker says so, then looks whether the queue is still in the table: a queue that has
    left while the worker was not at it is never touched again.
    """
    ran = False
    address = load(worker, TABLE)
    table = words_at(address)
    for place in range(1, 1 + table[COUNT]):
        queue = load(table, place)
        if queue != 0:
            store(worker, CURRENT, queue)
            fence()
            if load(worker, TABLE) == address and load(table, place) == queue:
                ran = _run_next(words_at(queue)) or ran
    store(worker, CURRENT, 0)
    return ran


@entry("slots.work", 1)
def work(address):
    """A worker's life: run pulses until STOP is set, and sleep where there are none."""
    worker = words_at(address)
    while load(worker, STOP) == 0:
        if _run_round(worker):
            continue
        store(worker, SLEEPING, 1)
        fence()
        if not _run_round(worker) and load(worker, STOP) == 0:
            wait_event(worker[WAIT])
        store(worker, SLEEPING, 0)


@device
def _wake(worker: Pointer) -> None:
    fence()
    if load(worker, SLEEPING) == 1:
        store(worker, SLEEPING, 0)
        set_event(worker[WAKE])


@entry("slots.join", 4, brief=True)
def join(worker_address, table_address, place, queue_address):
    """Enter a queue in a table, and have the worker look at that table."""
    store(words_at(table_address), place, queue_address)
    store(words_at(worker_address), TABLE, table_address)


@entry("slots.submit", 3, brief=True)
def submit(worker_address, queue_address, slot):
    """Put a filled slot at the end of the order."""
    worker, queue = words_at(worker_address), words_at(queue_address)
    submitted = queue[SUBMITTED]
    queue[_nth(queue, submitted)] = slot
    store(queue, SUBMITTED, submitted + 1)
    _wake(worker)


@entry("slots.drop", 1, types.int64, brief=True)
def drop(queue_address):
    """Take back the oldest pulse that is not begun; its slot, -1 where there is none."""
    queue = words_at(queue_address)
    begun = load(queue, BEGUN)
    while begun < queue[SUBMITTED]:
        slot = queue[_nth(queue, begun)]
        if replace(queue, BEGUN, begun, begun + 1):
            return slot
        begun = load(queue, BEGUN)
    return -1


@entry("slots.finished", 1, types.int64, brief=True)
def finished(queue_address):
    """How many pulses of a queue have run."""
    return load(words_at(queue_address), FINISHED)


@entry("slots.listen", 1, types.int64, brief=True)
def listen(queue_address):
    """Have EVENT set when the next pulse is finished; how many have run."""
    queue = words_at(queue_address)
    store(queue, LISTENING, 1)
    fence()
    return load(queue, FINISHED)


@entry("slots.clear", 1, brief=True)
def clear(descriptor):
    """Clear an event, whose descriptor must not block."""
    wait_event(descriptor)


@entry("slots.leave", 3, types.int64, brief=True)
def leave(worker_address, place, queue_address):
    """Drop all that waits and leave the table; whether the worker is at the queue, whose memory it then needs."""
    worker, queue = words_at(worker_address), words_at(queue_address)
    begun = load(queue, BEGUN)
    while begun < queue[SUBMITTED] and not replace(queue, BEGUN, begun, queue[SUBMITTED]):
        begun = load(queue, BEGUN)
    store(words_at(load(worker, TABLE)), place, 0)
    fence()
    return load(worker, CURRENT) == address_of(queue)


@entry("slots.is_at", 2, types.int64, brief=True)
def is_at(worker_address, queue_address):
    """Whether the worker is at a queue."""
    return load(words_at(worker_address), CURRENT) == queue_address


@entry("slots.stop", 1, brief=True)
def stop(worker_address):
    """End the worker's life after the pulse that it runs."""
    worker = words_at(worker_address)
    store(worker, STOP, 1)
    set_event(worker[WAKE])
