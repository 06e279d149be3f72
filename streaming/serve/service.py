"""Service: models, workers, connections and counters of a running server."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
from starlette.websockets import WebSocket

from pulse.program.program import Program
from pulse.support.not_copyable import NotCopyable
from streaming.protocol.errors import ProtocolError
from streaming.realtime.process import apply_to_process
from streaming.realtime.realtime_settings import Realtime
from streaming.serve.admission import Admission
from streaming.serve.checkpoints import CheckpointFolder
from streaming.serve.connection import Connection
from streaming.serve.counts import ServerCounts
from streaming.serve.hosted_model import HostedModel
from streaming.serve.lanes.lane_worker import LaneWorker
from streaming.serve.lanes.loop_pacing import LoopPacing
from streaming.serve.placement import CheckpointStore, Placement
from streaming.serve.settings import ModelSettings, ServerSettings
from streaming.serve.stream_times import StreamTimes

PROCESS_SETTINGS = Realtime(None, lock_memory=False, freeze_gc=False, switch_interval_s=0.0005)
"""A worker that returns from a step waits for the GIL for the switch interval."""
CHECK_PERIOD_S = 1.0
"""The seconds between checks of connections."""
SWEEP_PERIOD_S = 30.0
"""The seconds between removals of expired checkpoints."""
HostedProgram = tuple[ModelSettings, Program, int | None]
"""A model's settings, its program, and its rate in Hz."""
logger = logging.getLogger("pulse.serve")


class Service(NotCopyable, reason="it has threads"):
    """A server without its sockets.

    counts     the counts since the start
    store      stores checkpoints, in place of the folder of the settings
    placement  the placement of streams in a fleet; None for a single server
    Raises     InputError: a model that cannot be served
    """

    def __init__(
        self,
        settings: ServerSettings,
        programs: Sequence[HostedProgram],
        threads: int,
        store: CheckpointStore | None = None,
        placement: Placement | None = None,
    ) -> None:
        self.settings = settings
        pacing = LoopPacing()
        self.workers = [LaneWorker(index, pacing) for index in range(threads)]
        if store is None and settings.checkpoints is not None:
            store = CheckpointFolder(settings.checkpoints, settings.keep_s)
        self.checkpoints, self.placement = store, placement
        save_s = None if store is None else settings.checkpoint_s
        self.models = [HostedModel(*program, self.workers, save_s) for program in programs]
        self.admission = Admission(settings, self.models, self.workers)
        self.counts = ServerCounts()
        self.connections: set[Connection] = set()
        self.began_s = time.time()
        self._past = {model.name: StreamTimes() for model in self.models}

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Step streams while the context is open."""
        loop = asyncio.get_running_loop()
        with apply_to_process(PROCESS_SETTINGS):
            for worker in self.workers:
                worker.start()
            try:
                async with anyio.create_task_group() as tasks:
                    for worker in self.workers:
                        loop.add_reader(worker.answered.to_read, self._deliver, worker)
                    tasks.start_soon(self._watch)
                    yield
                    tasks.cancel_scope.cancel()
            finally:
                for worker in self.workers:
                    loop.remove_reader(worker.answered.to_read)
                    worker.stop()

    async def serve(self, socket: WebSocket, address: str, token: str | None) -> None:
        """Serve one client, until it is gone."""
        connection = Connection(
            socket=socket,
            address=address,
            token=token,
            admission=self.admission,
            limits=self.settings.limits,
            counts=self.counts,
            checkpoints=self.checkpoints,
            placement=self.placement,
        )
        self.connections.add(connection)
        reason = "failed"
        try:
            reason = await connection.run()
        finally:
            self.connections.discard(connection)
            self.counts.ended[reason] += 1
            stream = connection.stream
            if stream is not None:
                self.counts.streams += 1
                self._past[stream.model.name].merge(stream.times)
            logger.info(
                "stream ended",
                extra={
                    "stream": connection.id,
                    "address": address,
                    "model": None if stream is None else stream.model.name,
                    "reason": reason,
                    "seconds": round(time.time() - connection.began_s, 3),
                    "frames": None if stream is None else stream.received,
                },
            )

    def send_successors(self) -> None:
        """Tell the clients that servers of the fleet have joined or left."""
        for connection in list(self.connections):
            connection.send_successors()

    async def move_streams(self, per_s: float) -> None:
        """Refuse new streams; end the open ones one by one, so that they continue on other servers."""
        self.admission.draining = True
        for connection in list(self.connections):
            connection.end(
                ProtocolError("drain", "the server is handing its streams over", "connect to another one")
            )
            await anyio.sleep(1 / per_s)

    async def drain(self) -> None:
        """Refuse new streams, let the open ones continue for a while, then end them."""
        self.admission.draining = True
        with anyio.move_on_after(self.settings.drain_s):
            while self.connections:
                await anyio.sleep(0.05)
        for connection in list(self.connections):
            connection.end(ProtocolError("drain", "the server ends", "connect again later"))
        with anyio.move_on_after(CHECK_PERIOD_S):
            while self.connections:
                await anyio.sleep(0.01)

    def times(self, model: str) -> StreamTimes:
        """Return the latencies of all streams of a model so far, as a copy."""
        total = StreamTimes()
        total.merge(self._past[model])
        for connection in list(self.connections):
            if connection.stream is not None and connection.stream.model.name == model:
                total.merge(connection.stream.times)
        return total

    def _deliver(self, worker: LaneWorker) -> None:
        worker.answered.wait()
        worker.deliver()

    async def _watch(self) -> None:
        """End connections that are idle or slow; measure how busy the loop is."""
        wall, busy = time.monotonic(), time.thread_time()
        sweep = wall
        while True:
            await anyio.sleep(CHECK_PERIOD_S)
            now, busy_now = time.monotonic(), time.thread_time()
            self.admission.loop_fraction = (busy_now - busy) / (now - wall)
            wall, busy = now, busy_now
            for connection in list(self.connections):
                connection.end_if_idle_or_slow(now)
            if isinstance(self.checkpoints, CheckpointFolder) and now > sweep:
                sweep = now + SWEEP_PERIOD_S
                expired, failed = await anyio.to_thread.run_sync(self.checkpoints.sweep)
                self.counts.checkpoints_expired += expired
                self.counts.checkpoints_failed += failed
