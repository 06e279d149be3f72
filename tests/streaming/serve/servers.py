"""Servers for tests, each in its own thread with its own event loop."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("httpx", reason="needs the extra test")
pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("uvicorn", reason="needs the extra serve")
pytest.importorskip("websockets", reason="needs the extra serve")
pytest.importorskip("prometheus_client", reason="needs the extra serve")

from streaming.serve.server import Server, listen, url_of
from streaming.serve.service import HostedProgram, Service
from streaming.serve.settings import LimitSettings, ServerSettings

PULSE = 6
RATE_HZ = 100


class RunningServer:
    """A server that runs.

    url      http://…; ``ws`` is that of WebSockets
    service  what it serves
    """

    def __init__(self, settings: ServerSettings, programs: Sequence[HostedProgram], threads: int = 2) -> None:
        self.service = Service(settings, programs, threads)
        self._socket = listen("127.0.0.1", 0, settings.limits.slow_s)
        self.server = Server(self.service, self._socket)
        self.url = url_of(self._socket, settings.certificate is not None)
        self.ws = self.url.replace("http", "ws")
        self._thread = threading.Thread(target=anyio.run, args=(self.server.serve_streams,))

    def start(self) -> None:
        """Start the thread and wait until the server listens."""
        self._thread.start()
        while not self.server.started and self._thread.is_alive():
            self._thread.join(0.01)

    def begin_stop(self) -> None:
        """Let the server drain and end, without waiting for it."""
        self.server.should_exit = True

    def stop(self) -> None:
        """Drain the server and end its thread."""
        self.begin_stop()
        self._thread.join(20)
        self._socket.close()
        assert not self._thread.is_alive()


@contextmanager
def running_server(
    programs: Sequence[HostedProgram], settings: ServerSettings | None = None, threads: int = 2
) -> Iterator[RunningServer]:
    """A server as long as the block is open."""
    server = RunningServer(
        settings or ServerSettings(tuple(model for model, _, _ in programs)), programs, threads
    )
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def servers_with_checkpoints(
    program: HostedProgram, folder: Path, count: int, checkpoint_s: float, **settings: Any
) -> Iterator[list[RunningServer]]:
    """Servers of one model, whose checkpoints are in one folder; they end side by side."""
    settings_of_all = ServerSettings(
        program[:1],
        limits=LimitSettings(speed=1e6),
        checkpoints=folder,
        checkpoint_s=checkpoint_s,
        budget=1000.0,
        **settings,
    )
    with ExitStack() as stack:
        started = [
            stack.enter_context(running_server([program], settings_of_all, threads=1)) for _ in range(count)
        ]
        for server in started:
            stack.callback(server.begin_stop)
        yield started
