"""A worker of a fleet: what fails in it is reported or logged, and leaves no thread or socket."""

import socket
import threading
from collections.abc import Iterator

import anyio
import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from streaming.fleet.fleet_worker import FleetWorker
from streaming.serve.server import listen
from tests.streaming.fleet.holders import LocalHolders
from tests.streaming.fleet.local import small_deployment, small_programs
from tests.waiting import wait_until


def new_worker() -> FleetWorker:
    deployment = small_deployment()
    return FleetWorker("w", "a", "127.0.0.1", deployment, small_programs(deployment), LocalHolders("a"))


@pytest.fixture
def worker() -> Iterator[FleetWorker]:
    fleet_worker = new_worker()
    yield fleet_worker
    fleet_worker.stop()


def test_a_handover_that_fails_is_logged(worker: FleetWorker, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(per_s):
        raise OSError("the disk is gone")

    worker.service.move_streams = fail
    worker.drain()
    wait_until(lambda: "the disk is gone" in caplog.text, "the failure is logged")
    assert "streams of a draining worker are not handed over" in caplog.text


def test_a_server_that_does_not_end_is_an_error(worker: FleetWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()

    async def wait():
        await anyio.to_thread.run_sync(may_end.wait)

    worker.service.drain = wait
    with monkeypatch.context() as patch, pytest.raises(TimeoutError, match="the server of w has not ended"):
        patch.setattr("streaming.fleet.fleet_worker.SERVER_TIMEOUT_S", 0.01)
        worker.stop()
    may_end.set()


def test_a_server_that_cannot_begin_leaves_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    sockets: list[socket.socket] = []

    def listen_here(host, port, slow_s):
        sockets.append(listen(host, port, slow_s))
        return sockets[-1]

    def fail():
        raise RuntimeError("no loop")

    monkeypatch.setattr("streaming.fleet.fleet_worker.listen", listen_here)
    monkeypatch.setattr("streaming.fleet.fleet_worker.loop_options", fail)
    with pytest.raises(RuntimeError, match="no loop"):
        new_worker()
    assert [listening.fileno() for listening in sockets] == [-1]
