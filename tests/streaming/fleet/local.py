"""A fleet without Ray: workers in threads, holders that can be lost."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pulse.facts import Array
from pulse.program.program import Program

pytest.importorskip("uvicorn", reason="needs the extra serve")

from streaming.fleet.deployment import Deployment
from streaming.fleet.fleet_table import FleetTable, WorkerEntry
from streaming.fleet.fleet_worker import FleetWorker
from streaming.serve.settings import LimitSettings, ModelSettings, ServerSettings
from tests.noise import normal_noise
from tests.streaming.executor.streams import named_program
from tests.streaming.fleet.holders import LocalHolders
from tests.streaming.serve.offline_outputs import block_shape, expected_outputs
from tests.streaming.serve.servers import PULSE, RATE_HZ

KEEP_S = 60.0


def small_deployment(version: str = "1", **changes: float) -> Deployment:
    model = ModelSettings(name="filtered", streams=8)
    server = ServerSettings(
        (model,),
        port=0,
        threads=1,
        budget=1000.0,
        checkpoint_s=3 * PULSE / RATE_HZ,
        keep_s=KEEP_S,
        limits=LimitSettings(speed=1e6),
    )
    return Deployment(version=version, server=server, **changes)


def small_programs(deployment: Deployment) -> list[tuple[ModelSettings, Program, int]]:
    return [(deployment.server.models[0], named_program("filtered", PULSE), RATE_HZ)]


class LocalFleet:
    """Workers by name; ``tell`` gives all of them the table."""

    def __init__(self, nodes: str) -> None:
        self.holders = LocalHolders(nodes)
        self.workers = {}
        self.table = FleetTable(holders=self.holders.entries)

    def add(self, name: str, node: str, deployment: Deployment) -> None:
        programs = small_programs(deployment)
        self.workers[name] = FleetWorker(name, node, "127.0.0.1", deployment, programs, self.holders)
        entry = WorkerEntry(name, node, deployment.version, self.workers[name].url, "live")
        deployments = {**self.table.deployments, deployment.version: deployment}
        self.tell(workers=(*self.table.workers, entry), deployments=deployments)

    def tell(self, **changes: dict[str, Deployment] | tuple[Any, ...]) -> None:
        fields = {
            "workers": self.table.workers,
            "holders": self.table.holders,
            "deployments": self.table.deployments,
            **changes,
        }
        self.table = FleetTable(self.table.number + 1, **fields)
        for worker in self.workers.values():
            worker.set_table(self.table)

    @property
    def urls(self) -> list[str]:
        return [worker.url for worker in self.workers.values()]

    def has_saved(self, worker: str) -> bool:
        """Whether a checkpoint of a stream of the worker is safe."""
        return self.workers[worker].status().checkpoints > 0

    def has_resumed(self, worker: str) -> bool:
        return self.workers[worker].status().resumed > 0

    def has_streams(self, worker: str) -> bool:
        return self.workers[worker].status().streams > 0

    def worker_of(self, stream: Any) -> str:
        """The worker that serves a stream of a client."""
        (name,) = [
            name
            for name, worker in self.workers.items()
            if any(connection.id == stream.id for connection in worker.service.connections)
        ]
        return name


@contextmanager
def fleet(nodes: str, *workers: tuple[str, str, Deployment]) -> Iterator[LocalFleet]:
    """A fleet of workers, each given by name, node and deployment."""
    local_fleet = LocalFleet(nodes)
    try:
        for name, node, deployment in workers:
            local_fleet.add(name, node, deployment)
        yield local_fleet
    finally:
        with ThreadPoolExecutor() as pool:  # the workers end side by side
            list(pool.map(FleetWorker.stop, local_fleet.workers.values()))


def blocks_of(count: int, parts: int) -> tuple[list[Array], dict[str, Array]]:
    """Blocks of random input, and the outputs of a session that gets them."""
    program = named_program("filtered", PULSE)
    (port,) = program.inputs
    x = normal_noise(*block_shape(port, count * PULSE), seed=5)
    return np.array_split(x, parts, port.axis), expected_outputs(program, {port.name: x})


class Wire:
    """A proxy of a connection; while ``silent``, it swallows messages and stays open."""

    def __init__(self, url: str) -> None:
        self._target = url.removeprefix("ws://").split(":")
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self._listening.getsockname()[1]}"
        self.silent = threading.Event()
        self._ends = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for end in (self._listening, *self._ends):
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection((self._target[0], int(self._target[1])))
                self._ends += [near, far]
                threading.Thread(target=self._forward, args=(near, far), daemon=True).start()
                threading.Thread(target=self._forward, args=(far, near), daemon=True).start()

    def _forward(self, source: socket, target: socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if not self.silent.is_set():
                    target.sendall(data)
            if not self.silent.is_set():
                target.shutdown(socket.SHUT_WR)


@contextmanager
def wires(local_fleet: LocalFleet) -> Iterator[dict[str, Wire]]:
    """Let clients reach the workers of a fleet through wires; yield worker -> wire."""
    by_name = {name: Wire(worker.url) for name, worker in local_fleet.workers.items()}
    local_fleet.tell(
        workers=tuple(replace(entry, url=by_name[entry.name].url) for entry in local_fleet.table.workers)
    )
    try:
        yield by_name
    finally:
        for wire in by_name.values():
            wire.close()
