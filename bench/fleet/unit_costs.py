"""The costs of one stream, one checkpoint and one check of the workers, measured on this machine."""

import argparse
import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import numpy as np

import pulse
from bench.fleet.cluster import STORE_BYTES
from bench.serve.__main__ import run
from pulse.client import connect
from streaming.builtin import SAMPLE_RATE_HZ, model_path
from streaming.fleet.deployment import Deployment
from streaming.fleet.fleet_control import FleetControl
from streaming.fleet.fleet_plan import ClusterNode
from streaming.fleet.fleet_table import FleetTable, HolderEntry, WorkerEntry
from streaming.fleet.fleet_worker import FleetWorker, WorkerStatus
from streaming.fleet.holder import CheckpointHolder, HolderStatus
from streaming.fleet.rendezvous import ranking
from streaming.fleet.stream_name import StreamName
from streaming.protocol.binary_messages import HEADER
from streaming.serve.checkpoints import Checkpoint
from streaming.serve.running import open_programs
from streaming.serve.settings import ModelSettings, ServerSettings
from streaming.session import Session

PULSE = 160
"""Frames of a pulse."""
BLOCK = 320
"""Frames of a client's message."""
STREAMS = 12
"""Streams of the server whose messages are measured."""
SECONDS = 8.0
"""How long they run."""
STEPS = 3000
"""Measured steps of a session."""
SAVES = 400
"""Measured snapshots, restores and saved checkpoints."""
OPENS = 60
"""Measured opened streams."""
WORKERS = 2000
"""Workers of the table with which the check of the control is measured."""
FRAME_BYTES = 8 + 54
"""Bytes around the payload of a message: the head of a WebSocket frame, and TCP, IP and Ethernet of one packet."""
ACK_BYTES = 40 + FRAME_BYTES
"""An acknowledgement, and a packet of TCP that only acknowledges."""


@dataclass(frozen=True)
class UnitCosts:
    """CPU time in us, unless a name has another unit.

    step_p99           wall-clock time of a pulse alone
    message            CPU of the server's process for a pulse that it answers, all included
    snapshot           making a checkpoint; ``checkpoint_bytes`` is its size
    checkpoint_bytes   size of a checkpoint
    restore            resuming from one, in the process
    hold               a holder's dictionary, without Ray
    ray_save           CPU of worker and holder for a checkpoint through Ray; None: Ray is not there
    ray_save_holder    the part of the holder: one process of one thread
    open               CPU of client and server together for a stream that is opened and closed
    rank               finding the worker of a stream, for each worker that there is
    check              CPU of the control for each worker in a check, without Ray's calls
    ray_call           CPU of the control for a call of a worker
    table_bytes        size of the table, for each worker
    sound_bytes        bytes that a stream moves per second, in both directions
    """

    step_p99: float
    message: float
    snapshot: float
    checkpoint_bytes: int
    restore: float
    hold: float
    ray_save: float | None
    ray_save_holder: float | None
    open: float
    rank: float
    check: float
    ray_call: float | None
    table_bytes: float
    sound_bytes: float


def measure() -> UnitCosts:
    program = pulse.stream(model_path(), pulse=PULSE)
    session = Session(program)
    sound = (0.1 * np.random.default_rng(0).standard_normal((1, PULSE))).astype(np.float32)
    steps = _times(lambda: session.push(sound), STEPS)
    snapshot_us = _cpu_us(session.snapshot, SAVES)
    checkpoint = Checkpoint("denoiser", 0, (PULSE,), (PULSE,), session.snapshot())
    data, snapshot = checkpoint.as_bytes(), session.snapshot()
    restored = Session(program)
    restore_us = _cpu_us(lambda: restored.restore(snapshot), SAVES)
    holder = CheckpointHolder(1 << 30)
    names = [str(StreamName.new("1")) for _ in range(SAVES)]
    hold_us = _cpu_us(lambda: holder.save(names[0], 0, data, 60.0), SAVES)
    options = argparse.Namespace(servers=1, seconds=SECONDS, block=BLOCK, format="pcm16")
    row = run("denoiser", None, "pulse", STREAMS, options)
    workers = [f"1-{index:06x}" for index in range(WORKERS)]
    rank_us = _cpu_us(lambda: ranking(names[1], workers), 20) / WORKERS
    check_us, table_bytes = _check_costs()
    ray_save, ray_save_holder, ray_call = _ray_costs(data)
    messages_per_s = SAMPLE_RATE_HZ / BLOCK
    payload = HEADER.size + 2 * BLOCK
    sound_bytes = 2 * messages_per_s * (payload + FRAME_BYTES) + 2 * messages_per_s * ACK_BYTES
    return UnitCosts(
        step_p99=float(np.percentile(steps, 99)),
        message=row.cpu_us,
        snapshot=snapshot_us,
        checkpoint_bytes=len(data),
        restore=restore_us,
        hold=hold_us,
        ray_save=ray_save,
        ray_save_holder=ray_save_holder,
        open=anyio.run(_opens),
        rank=rank_us,
        check=check_us,
        ray_call=ray_call,
        table_bytes=table_bytes,
        sound_bytes=sound_bytes,
    )


async def _opens() -> float:
    """Return the CPU time of a process that is server and client, for each stream that is opened and closed."""
    settings = ServerSettings((ModelSettings(streams=4),), port=0, budget=100.0)
    deployment = Deployment(server=settings, min_workers=1)
    worker = FleetWorker("w", "node", "127.0.0.1", deployment, open_programs(settings), _OneHolder())
    worker.set_table(FleetTable(1, (WorkerEntry("w", "node", "1", worker.url, "live"),), _OneHolder.entries))
    began = time.process_time()
    for _ in range(OPENS):
        async with connect(worker.url):
            pass
    took = time.process_time() - began
    worker.stop()
    return 1e6 * took / OPENS


class _OneHolder:
    """A holder in this process."""

    entries = (HolderEntry("holder", "node"),)

    def __init__(self) -> None:
        self._holder = CheckpointHolder(1 << 30)

    def ask(self, names: Sequence[str], method: str, *arguments: Any) -> dict[str, Any]:
        return {name: getattr(self._holder, method)(*arguments) for name in names}


def _cpu_us(call: Callable[[], object], count: int) -> float:
    """Return the mean CPU time of a call in microseconds, which other load of the machine changes little."""
    began = time.thread_time()
    for _ in range(count):
        call()
    return 1e6 * (time.thread_time() - began) / count


def _times(call: Callable[[], object], count: int) -> list[float]:
    """Return the microseconds of each call."""
    times_us: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        times_us.append(1e6 * (time.perf_counter() - began))
    return times_us


class _StillCluster:
    """A cluster in which nothing happens, to measure the controller alone."""

    def __init__(self, table: FleetTable) -> None:
        self._nodes = [ClusterNode(holder.node, holder.node, 16.0) for holder in table.holders]
        self._workers = {
            worker.name: WorkerStatus(
                url=worker.url,
                streams=20,
                filled=0.5,
                refused=0,
                resumed=0,
                checkpoints=0,
                draining=False,
                table=table.number,
            )
            for worker in table.workers
        }
        self._holders = {holder.name: HolderStatus(0, 0, 0, 0, 0, table.number) for holder in table.holders}

    def nodes(self) -> list[ClusterNode]:
        return self._nodes

    def start_worker(self, name: str, node: ClusterNode, deployment: Deployment) -> None:
        raise AssertionError("as many run as were requested")

    def start_holder(self, name: str, node: ClusterNode) -> None:
        raise AssertionError("each node has one")

    def end(self, name: str) -> None:
        raise AssertionError("all of them answer")

    def ask(self, names: Sequence[str], method: str, *arguments: Any) -> dict[str, Any]:
        return {name: self._workers.get(name) or self._holders[name] for name in names}


def _check_costs() -> tuple[float, float]:
    """Return the CPU time of a check for each worker, and bytes of the table for each."""
    nodes = [f"{index:056x}" for index in range(WORKERS // 16)]
    workers = tuple(
        WorkerEntry(f"1-{index:06x}", nodes[index % len(nodes)], "1", f"ws://10.0.0.1:{index}", "live")
        for index in range(WORKERS)
    )
    holders = tuple(HolderEntry(f"holder-{index:08x}", node) for index, node in enumerate(nodes))
    deployment = Deployment(min_workers=WORKERS, max_workers=WORKERS)
    table = FleetTable(1, workers, holders, {"1": deployment})
    control = FleetControl(_StillCluster(table), table)
    control.reconcile(0.0)
    check_us = _cpu_us(lambda: control.reconcile(1.0), 5)
    return check_us / WORKERS, len(pickle.dumps(table)) / WORKERS


def _ray_costs(data: bytes) -> tuple[float | None, float | None, float | None]:
    """Return the CPU time of a save on both sides, on the holder's, and of the caller of a small call."""
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        return None, None, None
    from streaming.fleet.ray_cluster import ask_actors

    class Counted(CheckpointHolder):
        def cpu_s(self) -> float:
            return time.process_time()

    ray.init(
        "local",
        num_cpus=2,
        object_store_memory=STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=40,
    )
    try:
        actor = ray.remote(Counted).options(num_cpus=0).remote(1 << 30)
        actors = {"holder": actor}
        ask_actors(actors, "save", ("s", 0, data, 60.0), 10.0)
        there, here = ray.get(actor.cpu_s.remote()), time.process_time()
        for _ in range(SAVES):
            assert ask_actors(actors, "save", ("s", 0, data, 60.0), 10.0) == {"holder": "saved"}
        here, there = time.process_time() - here, ray.get(actor.cpu_s.remote()) - there
        small = time.process_time()
        ask_actors({str(index): actor for index in range(SAVES)}, "status", (), 10.0)
        small = time.process_time() - small
        return 1e6 * (here + there) / SAVES, 1e6 * there / SAVES, 1e6 * small / SAVES
    finally:
        ray.shutdown()
