"""FleetWorker: a server of streams in a thread of its process, as a member of a fleet. Independent of Ray."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future

import anyio

from pulse.errors import InputError
from pulse.support.cores import core_count
from pulse.support.not_copyable import NotCopyable
from pulse.support.record import record
from streaming.fleet.deployment import Deployment
from streaming.fleet.fleet_table import FleetTable
from streaming.fleet.membership import Membership
from streaming.fleet.replica_store import Holders, ReplicaStore
from streaming.serve.running import loop_options
from streaming.serve.server import Server, listen
from streaming.serve.service import HostedProgram, Service

SERVER_TIMEOUT_S = 20.0
"""A server that needs longer to begin or to end is an error."""
ANY_ADDRESS = ("0.0.0.0", "::")
logger = logging.getLogger("pulse.fleet")


@record
class WorkerStatus:
    """The status that a worker reports.

    url      its address; empty while it starts
    streams  open streams
    filled   the fraction of the budget of its steps that streams fill, or the event loop's if greater
    refused  streams refused for lack of time or lanes since it started
    resumed  streams resumed since it started
    checkpoints  checkpoints saved since it started
    draining  whether it accepts no more streams
    table    the number of its table
    """

    url: str
    streams: int
    filled: float
    refused: int
    resumed: int
    checkpoints: int
    draining: bool
    table: int


class FleetWorker(NotCopyable, reason="it has a server in a thread"):
    """A worker that serves until ``stop``.

    host      the address of its machine
    programs  the models of its server, compiled
    Raises    InputError: a model that cannot be served, an address in use
    """

    def __init__(
        self,
        name: str,
        node: str,
        host: str,
        deployment: Deployment,
        programs: Sequence[HostedProgram],
        holders: Holders,
    ) -> None:
        settings = deployment.server
        self.name, self.node = name, node
        self.membership = Membership(name, deployment.version)
        store = ReplicaStore(self.membership, node, holders, deployment.copies, settings.keep_s)
        threads = settings.threads or core_count()
        self.service = Service(settings, programs, threads, store, self.membership)
        self._deployment = deployment
        self._listening = listen(settings.host, settings.port, settings.limits.slow_s)
        self._server = Server(self.service, self._listening)
        own_host, port = self._listening.getsockname()[:2]
        self.url = deployment.address(host if own_host in ANY_ADDRESS else own_host, port)
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name=f"pulse fleet {name}", daemon=True)
        self._thread.start()
        try:
            self._loop.result(SERVER_TIMEOUT_S)
        except BaseException as error:
            try:
                self.stop()
            except TimeoutError as other:
                error.add_note(str(other))
            raise

    def status(self) -> WorkerStatus:
        """Return the worker's status. Raises InputError: the server has failed."""
        if self._failed is not None:
            raise InputError(f"the server of {self.name} has ended: {self._failed}") from self._failed
        service, admission = self.service, self.service.admission
        loads = [admission.thread_load(worker) for worker in service.workers]
        counts = service.counts
        return WorkerStatus(
            url=self.url,
            streams=len(service.connections),
            filled=max(sum(loads) / len(loads) / service.settings.budget, admission.loop_fraction),
            refused=counts.ended["busy"],
            resumed=counts.resumed,
            checkpoints=counts.checkpoints,
            draining=admission.draining,
            table=self.membership.table.number,
        )

    def set_table(self, table: FleetTable) -> None:
        """Take a new table of the fleet and inform clients; a table older than the present one is ignored."""
        if table.number > self.membership.table.number:
            self.membership.table = table
            self._loop.result().call_soon_threadsafe(self.service.send_successors)

    def drain(self) -> None:
        """Refuse new streams and hand over the open ones; returns at once."""
        moving = self.service.move_streams(self._deployment.moved_per_s)
        asyncio.run_coroutine_threadsafe(moving, self._loop.result()).add_done_callback(_log_failure)

    def stop(self) -> None:
        """Stop serving, after ending streams that are still open. Raises TimeoutError: the server does not end."""
        self._server.should_exit = True
        self._thread.join(SERVER_TIMEOUT_S)
        self._listening.close()
        if self._thread.is_alive():
            raise TimeoutError(f"the server of {self.name} has not ended within {SERVER_TIMEOUT_S:g} s")

    def _serve(self) -> None:
        try:
            anyio.run(self._begin, backend_options=loop_options())
        except BaseException as error:
            self._failed = error
            if not self._loop.done():
                self._loop.set_exception(error)

    async def _begin(self) -> None:
        self._loop.set_result(asyncio.get_running_loop())
        await self._server.serve_streams()


def _log_failure(moving: Future[None]) -> None:
    if not moving.cancelled() and (error := moving.exception()) is not None:
        logger.error("the streams of a draining worker are not handed over", exc_info=error)
