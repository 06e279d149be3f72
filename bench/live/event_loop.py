"""Designs of the usual kind: the callback hands blocks to an asyncio loop, which runs the model."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import numpy as np

from bench.live.design import Outcome, Setup
from pulse.facts import Array
from streaming import Session
from streaming.realtime import Realtime, apply_to_process, apply_to_thread

HEADROOM_BLOCKS = 1
"""Blocks between one that comes in and its result: it has the time of a block to be computed."""
MAX_WAITING_BLOCKS = 4
"""Blocks; more are not accepted, for their results would come too late anyway."""

Push: TypeAlias = Callable[[Array], Awaitable[Array]]


def run_loop(setup: Setup) -> Outcome:
    """Call ``Session.push`` in the loop."""
    session = warm_up(setup)

    async def push(block: Array) -> Array:
        return push_block(session, block)

    return asyncio.run(_run(setup, push))


def run_threads(setup: Setup) -> Outcome:
    """Call ``Session.push`` through ``asyncio.to_thread``, a hop for each block."""
    session = warm_up(setup)

    async def push(block: Array) -> Array:
        return await asyncio.to_thread(push_block, session, block)

    return asyncio.run(_run(setup, push))


def run_tuned_loop(setup: Setup) -> Outcome:
    """Do as ``run_loop``, with a short switch interval of Python's threads and real-time priority."""
    requested = Realtime(switch_interval_s=1e-4)
    apply_to_thread(requested)
    with apply_to_process(requested):
        return run_loop(setup)


def open_stream(setup: Setup, callback: Callable[..., None]) -> Any:
    """Open the device, which runs inside its context and calls the callback as sounddevice does."""
    import sounddevice

    return sounddevice.Stream(
        setup.rate_hz, setup.block_frames, setup.device, 1, "float32", "low", callback=callback
    )


class _Exchange:
    """The exchange between the callback and the loop."""

    def __init__(self, setup: Setup, loop: asyncio.AbstractEventLoop) -> None:
        self.times_ns = list[tuple[int, int]]()
        self.blocks = self.dropped = self.flagged = 0
        self.device_time_s: Callable[[], float] = lambda: 0.0
        """The clock of the device; set before it runs."""
        self._loop = loop
        self._waiting: asyncio.Queue[tuple[int, int, Array]] = asyncio.Queue(MAX_WAITING_BLOCKS)
        self._results: deque[tuple[int, Array]] = deque()

    def callback(self, captured: Array, played: Array, frames: int, times: Any, flags: object) -> None:
        """Hand over the recorded block, in the device's thread; play the result that is due now, or silence.

        A block has arrived when PortAudio called, before the GIL was acquired.
        """
        waited_s = max(0.0, self.device_time_s() - times.currentTime)
        arrived_ns = time.monotonic_ns() - int(waited_s * 1e9)
        self.flagged += bool(flags)
        self._loop.call_soon_threadsafe(self._accept, self.blocks, arrived_ns, captured.copy())
        due = self.blocks - HEADROOM_BLOCKS
        while self._results and self._results[0][0] < due:
            self._results.popleft()
        if self._results and self._results[0][0] == due:
            played[:] = self._results.popleft()[1].reshape(played.shape)
        else:
            played.fill(0)
            self.dropped += due >= 0
        self.blocks += 1

    def _accept(self, index: int, arrived_ns: int, block: Array) -> None:
        if not self._waiting.full():
            self._waiting.put_nowait((index, arrived_ns, block))

    async def work(self, push: Push) -> None:
        """Process block by block, in the loop."""
        while True:
            index, arrived_ns, block = await self._waiting.get()
            self._results.append((index, await push(block)))
            self.times_ns.append((arrived_ns, time.monotonic_ns()))


async def _run(setup: Setup, push: Push) -> Outcome:
    exchange = _Exchange(setup, asyncio.get_running_loop())
    worker = asyncio.create_task(exchange.work(push))
    device = open_stream(setup, exchange.callback)
    exchange.device_time_s = lambda: device.time
    with device:
        await asyncio.wait({worker}, timeout=setup.seconds)
    if worker.done():
        worker.result()
    worker.cancel()
    times = np.array(exchange.times_ns, np.int64).reshape(-1, 2)
    return Outcome(times, setup.block_s, exchange.blocks, exchange.dropped, exchange.flagged)


def push_block(session: Session, block: Array) -> Array:
    (port,) = session.program.inputs
    (result,) = session.push(block.reshape(port.shape)).values()
    return result


def warm_up(setup: Setup) -> Session:
    session = Session(setup.program)
    for _ in range(20):
        push_block(session, np.zeros(setup.block_frames, np.float32))
    session.reset()
    return session
