"""A fleet on a real cluster of Ray: several nodes on this machine. Workers, nodes and the control are lost."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="needs the extra fleet")

import pulse  # noqa: E402
from bench.fleet.cluster import fleet_here  # noqa: E402
from pulse.client import connect  # noqa: E402
from pulse.errors import InputError  # noqa: E402
from streaming.builtin import model_path  # noqa: E402
from streaming.fleet.deployment import Deployment  # noqa: E402
from streaming.fleet.stream_name import StreamName  # noqa: E402
from streaming.serve.settings import ModelSettings, ServerSettings  # noqa: E402
from streaming.session import Session  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore"),  # of Ray itself
]
BLOCK = 320
BLOCKS = 300
LONG_S = 90.0


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def deployment(version: str = "1", **changes: Any) -> Any:
    server = ServerSettings(
        (ModelSettings(streams=16, pulse=160),), port=0, threads=1, checkpoint_s=0.25, budget=100.0
    )
    return Deployment(version, server, **{"min_workers": 3, "max_workers": 5, **changes})


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A fleet of three workers on three nodes, and the cluster."""
    with fleet_here(3, deployment()) as machines:
        yield machines


@pytest.fixture
def fleet(cluster: Any) -> Any:
    """The control of the fleet."""
    control, _ = cluster
    return control


def live(fleet: Any, count: int = 3, version: str = "1") -> Any:
    return fleet.wait(
        lambda status: len(status.table.live_workers(version)) >= count, LONG_S
    ).table.live_workers(version)


def serving_worker(fleet: Any, workers: Any) -> Any:
    """The worker with a stream, and its process."""
    for worker in workers:
        actor = ray.get_actor(worker.name, fleet.name)
        status, process = ray.get([actor.status.remote(), actor.process.remote()])
        if status.streams:
            return worker, process
    raise AssertionError("no worker has the stream")


async def speak(fleet: Any, at_half: Any, version: str = "1", count: int = 3) -> tuple[int, StreamName]:
    """Stream in real time and call ``at_half`` halfway; return the connections and the name of the stream."""
    workers = await anyio.to_thread.run_sync(live, fleet, count, version)
    sound = 0.1 * np.random.default_rng(7).standard_normal((1, BLOCKS * BLOCK))
    x = sound.astype(np.float32)
    async with connect([worker.url for worker in workers], reconnect_timeout_s=30) as stream:
        for number in range(BLOCKS):
            await stream.send(x[:, number * BLOCK : (number + 1) * BLOCK])
            await anyio.sleep(BLOCK / 16000)
            if number == BLOCKS // 2:
                await anyio.to_thread.run_sync(at_half, *serving_worker(fleet, workers))
        outputs = await stream.flush()
        connections, name = stream.connections, StreamName.of_text(stream.resume_name)
    session = Session(pulse.stream(model_path(), pulse=160))
    first = session.push(x)["denoised"].copy()
    expected = np.concatenate([first, session.flush()["denoised"]], 1)
    assert np.array_equal(outputs["denoised"], expected)
    return connections, name


async def test_streams_survive_a_killed_worker(fleet: Any) -> None:
    connections, _ = await speak(fleet, lambda _, process: os.kill(process, signal.SIGKILL))
    assert connections == 2
    assert len(live(fleet)) == 3
    assert fleet.status().lost >= 1


async def test_streams_survive_a_lost_node(cluster: Any) -> None:
    fleet, machines = cluster
    live(fleet)
    head = machines.head_node.node_id

    def remove(worker, process):
        if worker.node == head:  # Ray's own head stays
            os.kill(process, signal.SIGKILL)
        else:
            (node,) = [listed for listed in machines.list_all_nodes() if listed.node_id == worker.node]
            machines.remove_node(node, allow_graceful=False)

    connections, _ = await speak(fleet, remove)
    assert connections == 2
    if len(machines.list_all_nodes()) < 3:
        machines.add_node(num_cpus=4, object_store_memory=100 << 20)
    assert len(live(fleet)) == 3
    status = fleet.wait(
        lambda status_now: len(status_now.holders) == 3 and len(status_now.nodes) == 3, LONG_S
    )
    assert {holder.node for holder in status.table.holders} == {node.id for node in status.nodes}


async def test_streams_do_not_notice_that_the_control_is_killed(fleet: Any) -> None:
    before = {worker.name for worker in live(fleet)}

    def kill(worker, process):
        ray.kill(ray.get_actor("control", fleet.name), no_restart=False)

    connections, _ = await speak(fleet, kill)
    assert connections == 1, "streams do not notice"
    assert {worker.name for worker in live(fleet)} == before


async def test_an_operator_drains_a_worker(fleet: Any) -> None:
    def drain(worker, process):
        fleet.drain(worker.name)
        fleet.wait(lambda status: worker.name not in {listed.name for listed in status.table.workers}, LONG_S)

    connections, _ = await speak(fleet, drain)
    assert connections == 2


async def test_a_stream_keeps_its_version_beside_a_new_one(fleet: Any) -> None:
    def deploy(worker, process):
        fleet.deploy(deployment("2", min_workers=1))
        live(fleet, 1, "2")
        os.kill(process, signal.SIGKILL)

    connections, name = await speak(fleet, deploy)
    assert (connections, name.version) == (2, "1"), "it keeps its version, whatever happens"
    connections, name = await speak(fleet, lambda *_: None, "2", 1)
    assert (connections, name.version) == (1, "2")
    fleet.wait(lambda status: set(status.table.deployments) == {"2"}, LONG_S)
    fleet.deploy(deployment("1"))
    live(fleet)
    fleet.wait(lambda status: set(status.table.deployments) == {"1"}, LONG_S)


async def test_a_fleet_grows_and_shrinks_with_the_load(fleet: Any) -> None:
    """A client that sends eight times as fast as real time makes the fleet grow; it shrinks when the load is gone."""
    fleet.deploy(deployment(load=0.01, max_workers=4, down_after_s=1.0))
    urls = [worker.url for worker in live(fleet)]
    async with connect(urls, reconnect_timeout_s=30) as stream, anyio.create_task_group() as tasks:

        async def hurry():
            while True:
                await stream.send(np.zeros(BLOCK, np.float32))
                await anyio.sleep(BLOCK / 16000 / 8)

        tasks.start_soon(hurry)
        await anyio.to_thread.run_sync(live, fleet, 4)
        tasks.cancel_scope.cancel()
    fleet.wait(lambda status: len(status.table.workers) == 3, LONG_S)
    fleet.deploy(deployment())


def test_a_version_that_cannot_begin_reports_the_reason(fleet: Any, tmp_path: Path) -> None:
    server = ServerSettings((ModelSettings(path=tmp_path / "missing.onnx"),), port=0)
    fleet.deploy(Deployment("broken", server, min_workers=1))
    status = fleet.wait(
        lambda status_now: any("missing.onnx" in problem for problem in status_now.problems), LONG_S
    )
    assert not status.table.live_workers("broken")
    assert status.table.shares == {"1": 1.0}
    fleet.set_weight("broken", 0.0)
    fleet.wait(lambda status_now: "broken" not in status_now.table.deployments, LONG_S)


def run_fleet_command(*arguments: str) -> Any:
    command = [sys.executable, "-c", "from streaming.cli import main; main()", "fleet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONG_S)


def test_the_command_shows_and_drains(cluster: Any) -> None:
    fleet, machines = cluster
    process = run_fleet_command("status", "--address", machines.address, "--json")
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["versions"]["1"]["wanted"] == 3
    process = run_fleet_command("drain", "10.9.9.9", "--address", machines.address)
    assert process.returncode == 2
    assert "unknown worker or machine '10.9.9.9'" in process.stderr
    process = run_fleet_command("status", "--address", machines.address, "--name", "other")
    assert process.returncode == 2
    assert "this cluster has no fleet 'other'" in process.stderr
    with pytest.raises(InputError, match="another version"):
        fleet.deploy(Deployment("1"))


def test_streams_in_real_time_survive_kills(cluster: Any) -> None:
    """``python -m bench.fleet kills`` is the same with 200 kills."""
    from bench.fleet.kills import measure_kills_of

    began = time.monotonic()
    measured = anyio.run(measure_kills_of, cluster[0], 10, 3, 0.25, 0)
    print(measured.text(), f"{time.monotonic() - began:.0f} s")
    assert measured.equal == measured.streams
    assert len(measured.silences_ms) >= 10
