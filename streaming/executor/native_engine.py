"""The native engine: a thread that runs packed pulses without the GIL, from start to stop in one compiled call."""

import os
from collections import deque
from collections.abc import Iterator
from itertools import islice

import numpy as np

from pulse.facts import Array
from pulse.jit.events import NativeEvent
from pulse.program.machine.packed import PackedCall, PackedTensor
from pulse.program.native.native_state import NativeState
from pulse.program.streams.feeds import Feed
from pulse.program.streams.state import State
from pulse.support.mapping import aligned_bytes
from pulse.support.not_copyable import NotCopyable
from streaming.executor.engine import Result
from streaming.executor.engine_thread import EngineThread
from streaming.native import slots
from streaming.realtime import Realtime, RealtimeSetting

FIRST_TABLE_SIZE = 8
"""The size of the first table that is not empty."""
ENTRIES = (
    slots.work,
    slots.join,
    slots.submit,
    slots.drop,
    slots.count_finished,
    slots.listen,
    slots.clear,
    slots.leave,
    slots.is_at,
    slots.stop,
)


class NativeEngine(NotCopyable, reason="it has a thread; make another one"):
    """The engine for programs of the numba backend."""

    def __init__(self, realtime: Realtime | None = None) -> None:
        self._fields = slots.WorkerBlock.new()
        self.address: int = self._fields.address
        self._wake = NativeEvent()
        self._fields.wake, self._fields.wait = self._wake.to_write, self._wake.to_read
        self._tables = [slots.QueueTable.new()]
        self._fields.table = self._tables[0].address
        self._leaving_queues: list[NativeQueue] = []
        self._worker = EngineThread(self._work, self._end, realtime)

    @property
    def realtime_settings(self) -> list[RealtimeSetting]:
        return self._worker.realtime_settings

    def start(self) -> None:
        for entry in ENTRIES:
            entry.prepare()
        self._worker.start()

    def open(self, state: State, depth: int) -> "NativeQueue":
        assert isinstance(state, NativeState)
        self._sweep()
        table = self._tables[-1]
        if np.all(table.queues):
            table = self._grow(table)
        table_index = int(np.argmin(table.queues != 0))
        queue = NativeQueue(self, table_index, state, depth)
        slots.join.call(self.address, table.address, table_index, queue.address)
        return queue

    async def stop(self) -> None:
        await self._worker.stop()
        self._sweep()
        self._wake.close()

    def leave(self, leaving: "NativeQueue", table_index: int) -> None:
        """Remove a queue from the table; its memory is kept while the worker uses it."""
        if slots.leave.call(self.address, table_index, leaving.address):
            self._leaving_queues.append(leaving)
        else:
            leaving.event.close()

    def _sweep(self) -> None:
        """Free the removed queues that the worker no longer uses."""
        for leaving in list(self._leaving_queues):
            if not slots.is_at.call(self.address, leaving.address):
                self._leaving_queues.remove(leaving)
                leaving.event.close()

    def _grow(self, table: slots.QueueTable) -> slots.QueueTable:
        """Allocate a table for twice the queues; the previous one is kept, since the worker may still use it."""
        count = max(FIRST_TABLE_SIZE, 2 * table.count)
        larger = slots.QueueTable.new(more=count)
        larger.queues[: table.count] = table.queues
        larger.count = count
        self._tables.append(larger)
        return larger

    def _work(self) -> None:
        slots.work.call(self.address)

    def _end(self) -> None:
        slots.stop.call(self.address)


class NativeQueue(NotCopyable, reason="it holds addresses of this process; make another one"):
    """The queue of a stream in a ``NativeEngine``: all memory that the worker uses for it."""

    def __init__(self, engine: NativeEngine, table_index: int, state: NativeState, depth: int) -> None:
        self.event = NativeEvent()
        os.set_blocking(self.event.to_read, False)
        self._engine = engine
        self._table_index = table_index
        self._state = state
        self._packed: PackedCall = state.pack()
        self._inputs = aligned_bytes(max(depth * self._packed.input_bytes, 1))
        self._outputs = aligned_bytes(max(depth * self._packed.output_bytes, 1))
        self._submitted = np.zeros(depth, np.int64)
        memory = slots.SlotBlock.new(depth)
        self._slots = [memory[index] for index in range(depth)]
        self._queue = slots.Queue.new()
        self.address: int = self._queue.address
        self._queue.depth, self._queue.event = depth, self.event.to_write
        self._queue.packed = self._packed.call.address
        self._queue.order, self._queue.slots = self._submitted.ctypes.data, memory.address
        self._filled: list[dict[str, Array]] = []
        self._output_views: list[dict[str, Array]] = []
        for index in range(depth):
            inputs = self._inputs[index * self._packed.input_bytes :]
            outputs = self._outputs[index * self._packed.output_bytes :]
            slot = self._slots[index]
            slot.inputs, slot.outputs = inputs.ctypes.data, outputs.ctypes.data
            self._filled.append(_views(self._packed.inputs, inputs))
            self._output_views.append(_views(self._packed.outputs, outputs))
        self._free = list(range(depth))
        self._order: deque[int] = deque()
        self._collected = 0

    @property
    def failure(self) -> Exception | None:
        finished = slots.count_finished.call(self.address) - self._collected
        intact = self._count_before_fault(finished)
        return None if intact == finished else self._state.failure(f"in pulse {self._collected + intact}")

    @property
    def free_slots(self) -> int:
        return len(self._free)

    def submit(self, pulse: Feed) -> None:
        slot = self._free.pop()
        for name, view in self._filled[slot].items():
            view[...] = pulse[name]
        self._order.append(slot)
        slots.submit.call(self._engine.address, self.address, slot)

    def drop(self) -> int | None:
        slot = slots.drop.call(self.address)
        if slot < 0:
            return None
        queue_index = self._order.index(slot)
        del self._order[queue_index]
        self._free.append(slot)
        return queue_index

    def count_ready(self) -> int:
        return self._count_before_fault(slots.count_finished.call(self.address) - self._collected)

    def listen(self) -> int:
        return slots.listen.call(self.address) - self._collected

    def _count_before_fault(self, pulses: int) -> int:
        """Return the number of pulses that have run before the first one with a value that has no result."""
        if not self._packed.call.faults:
            return pulses
        faults = (self._slots[slot].faults for slot in islice(self._order, pulses))
        return next((index for index, count in enumerate(faults) if count), pulses)

    def clear(self) -> None:
        slots.clear.call(self.event.to_read)

    def collect(self, count: int) -> Iterator[Result]:
        for _ in range(count):
            slot = self._order[0]
            times = self._slots[slot]
            yield Result(self._output_views[slot], times.started_ns, times.ended_ns)
            self._order.popleft()
            self._free.append(slot)
            self._collected += 1

    def end(self, rest: Feed) -> list[dict[str, Array]]:
        self._state.clock.pulse = self._collected
        return self._state.end(rest, complete=True)

    def close(self) -> None:
        self._engine.leave(self, self._table_index)


def _views(tensors: tuple[PackedTensor, ...], memory: Array) -> dict[str, Array]:
    return {tensor.name: tensor.view(memory) for tensor in tensors}
